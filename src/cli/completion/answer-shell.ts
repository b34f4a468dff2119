import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { engineOf } from '../../stores/engine.ts';
import { enterDataDirectory } from '../data-directory.ts';
import type { Io } from '../io.ts';
import { complete } from './complete.ts';

/** The first word of a line with which a shell asks how its own line can go on. */
export const questionWord = '__complete';

/**
 * Answers `__complete WORD… :CURRENT`; the colon is there so that an empty word is not lost on the way. Prints a line for each
 * candidate, with a tab before its description, or only `:file` or `:directory`. Nobody could read an error here, so none is shown.
 */
export async function answerShell(program: Command, line: readonly string[], io: Io): Promise<void> {
  const words = line.slice(0, -1);
  const current = (line.at(-1) ?? ':').slice(1);
  try {
    const answer = await complete(program, { words, current }, async (query) => {
      const dataDir = enterDataDirectory(dataDirFlag(words), io);
      return engineOf({ dataDir, clock: systemClock }).operations.findNames(query);
    });
    if (typeof answer === 'string') io.stdout(`:${answer}\n`);
    else io.stdout(answer.map(({ value, description }) => `${value}\t${description}\n`).join(''));
  } catch {
    // no candidates
  }
}

/** The data directory that the line names. The line is not finished, so commander can't parse it. */
function dataDirFlag(words: readonly string[]): string | undefined {
  const after = words.slice(words.indexOf('--data-dir') + 1).filter((word) => word !== '=');
  if (words.includes('--data-dir')) return after[0];
  return words.find((word) => word.startsWith('--data-dir='))?.slice('--data-dir='.length);
}
