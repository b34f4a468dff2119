import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { codeOf, isRankdError, RankdError } from '../../base/errors.ts';
import { type AskedUser, idIn, idInAddress, userIn, userWords } from '../../core/asked-user.ts';
import { callWithin } from '../../ports/platform.ts';
import type { ListedMember } from '../../usecases/change/change-list.ts';
import type { Ranking } from '../../usecases/change/ranking.ts';
import { findUser } from '../../usecases/people/users.ts';
import type { Io } from '../io.ts';
import { printable } from '../output/text.ts';
import { experienceWords, namesExperience } from './arguments.ts';

/**
 * The ids named as arguments and in `--file` (`-` is standard input), each once, in this order.
 * Throws `usage` if there is none, or with the lines that are not ids, and as `readInput` for the file.
 */
export async function readIds(io: Io, { ids, file }: { ids: number[]; file: string | undefined }): Promise<number[]> {
  const listed =
    file === undefined ? [] : parseIdList(await readInput(io, file), file === '-' ? 'standard input' : file);
  const all = [...new Set([...ids, ...listed])];
  if (all.length > 0) return all;
  throw new RankdError('usage', 'No id was given.', {
    hint: 'name ids as arguments, or one on each line of a file, with --file FILE',
  });
}

/** One id a line; blank lines and what follows a `#` are ignored. Throws `usage` with the numbers of all other lines. */
function parseIdList(text: string, source: string): number[] {
  const filled = filledLines(text);
  const bad = filled.filter(({ content }) => placeIn(content) === undefined);
  if (bad.length > 0) {
    const named = bad
      .slice(0, maxNamed)
      .map(({ number, content }) => `line ${number} "${printable(content.slice(0, 32))}"`);
    const rest = bad.length > maxNamed ? [`and ${bad.length - maxNamed} more`] : [];
    throw new RankdError('usage', `Not an id in ${source}: ${[...named, ...rest].join(', ')}. Nothing was changed.`, {
      hint: bad.some(({ content }) => namesExperience(content))
        ? `${experienceWords.charAt(0).toLowerCase()}${experienceWords.slice(1)}`
        : "write one whole number above 0, or the address of a game's page, on each line; # begins a comment",
    });
  }
  return filled.flatMap(({ content }) => placeIn(content) ?? []);
}

/**
 * The content of a list's lines, without comments. If a line has several fields, as in spreadsheets, only the first is
 * taken. Empty lines are left out.
 */
function filledLines(text: string): Array<{ number: number; content: string }> {
  return text
    .split('\n')
    .map((line, index) => ({ number: index + 1, content: firstField(line.replace(/#.*/s, '').trim()) }))
    .filter(({ content }) => content !== '');
}

/**
 * A line with several ids is left unchanged, and then refused: otherwise it would go unnoticed that only the first id
 * counts.
 */
function firstField(line: string): string {
  const [first = '', ...others] = line.split(/[,;\t]/).map((field) =>
    field
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .trim(),
  );
  const isId = (field: string) => (idIn(field) ?? 0) > 255;
  return isId(first) && others.some(isId) ? line : first;
}

function placeIn(text: string): number | undefined {
  return idIn(text) ?? idInAddress('place', text);
}

const maxNamed = 20;

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

/**
 * The users of a list, each once, in order of their first line. Throws `usage` with the lines whose name leads to no
 * user.
 */
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

/** At most this many names share a request. */
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

/**
 * The content of a file that the user named; `-` is standard input. Throws `not_found`, `no_permission`, or `usage` for
 * a folder.
 */
export async function readInput(io: Io, file: string): Promise<string> {
  const text = file === '-' ? await io.readStdin() : readText(io, file);
  if (!text.includes('\0')) return text;
  throw new RankdError('usage', `${file === '-' ? 'Standard input' : file} is not UTF-8 text; it looks like UTF-16.`, {
    hint: 'save it as UTF-8; in PowerShell: Out-File -Encoding utf8',
  });
}

function readText(io: Io, file: string): string {
  try {
    return readFileSync(resolve(io.cwd, file), 'utf8');
  } catch (cause) {
    if (codeOf(cause) === 'EISDIR') {
      throw new RankdError('usage', `${file} is a folder.`, {
        cause,
        hint: 'name a file in it, or - for standard input',
      });
    }
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(codeOf(cause));
    throw new RankdError(
      isMissing ? 'not_found' : 'no_permission',
      `${file} ${isMissing ? 'does not exist' : "can't be read"}.`,
      {
        cause,
        hint: 'name a readable file, or - for standard input',
      },
    );
  }
}
