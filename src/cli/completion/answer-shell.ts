import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { dataDirectory } from '../../config/data-dir.ts';
import { storeFinder } from '../../config/find-store.ts';
import { engineOf } from '../../stores/engine.ts';
import type { Io } from '../io.ts';
import { refuseRoot } from '../refuse-root.ts';
import { complete } from './complete.ts';

/** The first word of a line with which a shell asks how its own line can go on. */
export const questionWord = '__complete';

/** How long a shell waits for names that are on a server. */
const giveUpAfterMs = 300;

/**
 * Answers `__complete WORD… :CURRENT`; the colon is there so that an empty word is not lost on the way. Prints a line for each
 * candidate, with a tab before its description, or only `:file` or `:directory`. Nobody could read an error here, so none is shown.
 */
export async function answerShell(program: Command, line: readonly string[], io: Io): Promise<void> {
  const words = line.slice(0, -1);
  const current = (line.at(-1) ?? ':').slice(1);
  try {
    const answer = await complete(program, { words, current }, async (query) => {
      const { env, cwd, user } = io;
      const dataDir = dataDirectory(optionIn('--data-dir', words), io);
      refuseRoot(dataDir, io, words);
      const configFile = optionIn('--config', words) ?? optionIn('-c', words);
      const server = await storeFinder({ configFile, env, cwd, user })?.();
      const found = engineOf({ dataDir, clock: systemClock, server }).operations.findNames(query);
      if (server === undefined) return found;
      return Promise.race([found, systemClock.sleep(giveUpAfterMs).then(() => Promise.reject(new Error('too late')))]);
    });
    if (typeof answer === 'string') io.stdout(`:${answer}\n`);
    else io.stdout(answer.map(({ value, description }) => `${value}\t${description}\n`).join(''));
  } catch {
    // no candidates
  }
}

/** The value of an option on the line. It is not finished, so commander can't parse it. */
function optionIn(option: string, words: readonly string[]): string | undefined {
  const after = words.slice(words.indexOf(option) + 1).filter((word) => word !== '=');
  if (words.includes(option)) return after[0];
  return words.find((word) => word.startsWith(`${option}=`))?.slice(option.length + 1);
}
