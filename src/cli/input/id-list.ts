import { RankdError } from '../../base/errors.ts';
import type { Io } from '../io.ts';
import { printable } from '../output/safe-text.ts';
import { idInAddress } from './addresses.ts';
import { asPlaceId, experienceWords, idIn, namesExperience } from './arguments.ts';
import { readInput } from './read-input.ts';

/** Parser for an argument that can be repeated. */
export function collectIds(text: string, previous: number[] = []): number[] {
  return [...previous, asPlaceId(text)];
}

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

/** What the lines of a list hold, without comments: of several fields, as spreadsheets write them, the first. Empty lines are left out. */
export function filledLines(text: string): Array<{ number: number; content: string }> {
  return text
    .split('\n')
    .map((line, index) => ({ number: index + 1, content: firstField(line.replace(/#.*/s, '').trim()) }))
    .filter(({ content }) => content !== '');
}

/** A line of several ids stays as it is, and is refused: nobody would notice that only the first of them counts. */
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

export const maxNamed = 20;
