import { isRankdError, RankdError } from '../../base/errors.ts';
import { callWithin } from '../../ports/platform.ts';
import type { ListedMember } from '../../usecases/change/change-list.ts';
import type { Ranking } from '../../usecases/change/ranking.ts';
import { findUser } from '../../usecases/people/find-user.ts';
import type { Io } from '../io.ts';
import { printable } from '../output/safe-text.ts';
import { type AskedUser, userIn, userWords } from './arguments.ts';
import { filledLines, maxNamed } from './id-list.ts';
import { readInput } from './read-input.ts';

interface AskedLine {
  line: number;
  asked: AskedUser;
}

/** The users in a file (`-` is standard input), one on each line. Throws `usage` with the lines that name none, and as `readInput` for the file. */
export async function readUsers(io: Io, file: string): Promise<AskedLine[]> {
  const source = file === '-' ? 'standard input' : file;
  const lines = filledLines(await readInput(io, file)).map(({ number, content }) => ({
    ...{ line: number, content, asked: userIn(content) },
  }));
  if (lines.length === 0)
    throw new RankdError('usage', `There is no user in ${source}.`, { hint: 'write one on each line' });
  const bad = lines.filter(({ asked }) => asked === undefined);
  if (bad.length > 0) {
    throw refusalOf(
      `No user in ${source}`,
      bad.map(({ line, content }) => `line ${line} "${printable(content.slice(0, 32))}"`),
      `write ${userWords} on each line; # begins a comment`,
    );
  }
  return lines.flatMap(({ line, asked }) => (asked === undefined ? [] : [{ line, asked }]));
}

/** Who these users are, each of them once, where the list has them first. Throws `usage` with the lines whose name leads to nobody. */
export async function findListed(
  app: Pick<Ranking, 'platform' | 'clock'>,
  lines: AskedLine[],
): Promise<ListedMember[]> {
  const members = new Map<number, ListedMember>();
  const bad: string[] = [];
  for (let from = 0; from < lines.length; from += atOnce) {
    using call = callWithin(app.clock, lookUpMs, 'operator');
    const found = lines.slice(from, from + atOnce).map(async ({ line, asked }) => {
      if (typeof asked === 'number') return { line, rankeeId: asked, rankeeName: '' };
      return findUser(app, asked, call).then(
        ({ id, name }) => ({ line, rankeeId: id, rankeeName: name }),
        (error) => {
          if (!isRankdError(error, 'user_not_found', 'user_renamed')) throw error;
          return `line ${line} (${error.message.replace(/\.$/, '')})`;
        },
      );
    });
    for (const one of await Promise.all(found)) {
      if (typeof one === 'string') bad.push(one);
      else if (!members.has(one.rankeeId)) members.set(one.rankeeId, one);
    }
  }
  if (bad.length > 0) throw refusalOf('Not every name leads to a user', bad, 'correct these lines, or give user ids');
  return [...members.values()];
}

/** So many names travel together. */
const atOnce = 50;
const lookUpMs = 60_000;

function refusalOf(what: string, lines: string[], hint: string): RankdError {
  const rest = lines.length > maxNamed ? [`and ${lines.length - maxNamed} more`] : [];
  return new RankdError(
    'usage',
    `${what}: ${[...lines.slice(0, maxNamed), ...rest].join(', ')}. Nothing was changed.`,
    { hint },
  );
}
