import { isRankdError, RankdError } from '../base/errors.ts';
import { controlCharacters } from '../base/text.ts';
import {
  experienceWords,
  idIn,
  idInAddress,
  namesExperience,
  type UserRef,
  userIn,
  userWords,
} from '../core/user-ref.ts';
import { callWithin } from '../ports/platform.ts';
import type { ListedMember } from './change/change-list.ts';
import type { Ranking } from './change/ranking.ts';
import { findUser } from './people/users.ts';

interface UserLine {
  line: number;
  asked: UserRef;
}

/**
 * Parses a list with one user per line. `source` names the list in errors. Throws `usage` if the list is empty or a
 * line does not name a user.
 */
export function usersIn(text: string, source: string): UserLine[] {
  const lines = filledLines(text).map(({ number, content }) => ({ line: number, content, asked: userIn(content) }));
  if (lines.length === 0)
    throw new RankdError('usage', `There are no users in ${source}.`, { hint: 'write one user per line' });
  const bad = lines.filter(({ asked }) => asked === undefined);
  if (bad.length > 0) {
    throw refusalOfLines(
      `Not every line of ${source} names a user`,
      bad.map(({ line, content }) => quotedLine(line, content)),
      `write ${userWords} on each line; # starts a comment`,
    );
  }
  return lines.flatMap(({ line, asked }) => (asked === undefined ? [] : [{ line, asked }]));
}

/**
 * Looks up the listed users, and returns each one once, in order of first appearance. Throws `usage` if users were not
 * found or have been renamed; the message names their lines.
 */
export async function findListed(
  app: Pick<Ranking, 'store' | 'platform' | 'clock'>,
  lines: UserLine[],
): Promise<ListedMember[]> {
  const members = new Map<number, ListedMember>();
  const bad: string[] = [];
  for (let from = 0; from < lines.length; from += atOnce) {
    using call = callWithin(app.clock, lookUpTimeoutMs, 'operator');
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
  if (bad.length > 0) throw refusalOfLines('Not every user was found', bad, 'correct these lines, or use user ids');
  return [...members.values()];
}

/** The maximum number of concurrent lookups. */
const atOnce = 50;
const lookUpTimeoutMs = 60_000;

/** Parses a list with one place id or address per line. Throws `usage` if a line does not name a place. */
export function placesIn(text: string, source: string): number[] {
  const filled = filledLines(text);
  const bad = filled.filter(({ content }) => placeIn(content) === undefined);
  if (bad.length > 0) {
    throw refusalOfLines(
      `Not every line of ${source} names a place`,
      bad.map(({ number, content }) => quotedLine(number, content)),
      bad.some(({ content }) => namesExperience(content))
        ? `${experienceWords.charAt(0).toLowerCase()}${experienceWords.slice(1)}`
        : "write a place id, or the address of a game's page, on each line; # starts a comment",
    );
  }
  return filled.flatMap(({ content }) => placeIn(content) ?? []);
}

function placeIn(text: string): number | undefined {
  return idIn(text) ?? idInAddress('place', text);
}

/** Removes comments and empty lines, and reduces each spreadsheet row to its first field. */
function filledLines(text: string): Array<{ number: number; content: string }> {
  return text
    .split('\n')
    .map((line, index) => ({ number: index + 1, content: firstField(line.replace(/#.*/s, '').trim()) }))
    .filter(({ content }) => content !== '');
}

/**
 * Returns the line's first field. If the line has several ids, returns all of it, so that the line is rejected rather
 * than silently cut short.
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

function quotedLine(line: number, content: string): string {
  return `line ${line} "${content.slice(0, 32).replaceAll(controlCharacters, '\uFFFD')}"`;
}

const maxNamed = 20;

function refusalOfLines(what: string, lines: string[], hint: string): RankdError {
  const rest = lines.length > maxNamed ? [`and ${lines.length - maxNamed} more`] : [];
  return new RankdError(
    'usage',
    `${what}: ${[...lines.slice(0, maxNamed), ...rest].join(', ')}. Nothing was changed.`,
    { hint },
  );
}
