/**
 * Matches characters that break lines, control terminals, reorder text or are invisible, so that two names could look
 * alike or a name could look empty: control and format characters, line separators, fillers, blanks, tags, variation
 * selectors beyond U+FE0F, and every combining mark after the fourth. Allows the joiner U+200D between two emoji, which
 * it combines.
 */
export const controlCharacters =
  /\p{Cc}|[\u2028\u2029\u2800\ufff9-\ufffb]|(?![\u200d\ufe00-\ufe0f])\p{Default_Ignorable_Code_Point}|(?<=\p{M}{4})\p{M}|\u200d(?:(?<!\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?\u200d)|(?!\p{Extended_Pictographic}))/gu;

/** Escapes control characters as JSON does, e.g. `\u001b`. */
export function escapeControls(text: string): string {
  if (/^[ -~\u2026\u2192]*$/.test(text)) return text; // most log lines
  return text.replaceAll(controlCharacters, (control) =>
    control
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** Shortens text to `max` characters without splitting a surrogate pair. */
export function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  const characters = [...text];
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : text;
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** Returns the candidate closest to a mistyped name; `undefined` if none is close. */
export function suggest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = plain(name);
  const maxEdits = Math.max(1, wanted.length / 4);
  let best: { candidate: string; edits: number } | undefined;
  for (const candidate of candidates) {
    const letters = plain(candidate);
    if (Math.abs(letters.length - wanted.length) > maxEdits) continue; // each added or missing letter is an edit
    const edits = sorted(wanted) === sorted(letters) ? 1 : editDistance(wanted, letters); // swapped letters
    if (edits <= maxEdits && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { candidate, edits };
  }
  return best?.candidate;
}

/** Makes `maxRank`, `max-rank`, `max_rank` and `max rank` equal. */
function plain(name: string): string {
  return name
    .slice(0, 64)
    .toLowerCase()
    .replaceAll(/[-_\s]/g, '');
}

function sorted(text: string): string {
  return [...text].sort().join('');
}

function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const letter of from) {
    const above = row;
    row = [(above[0] ?? 0) + 1];
    for (let index = 0; index < to.length; index += 1) {
      const replaced = (above[index] ?? 0) + (letter === to[index] ? 0 : 1);
      row.push(Math.min(replaced, (above[index + 1] ?? 0) + 1, (row[index] ?? 0) + 1));
    }
  }
  return row.at(-1) ?? 0;
}

export function sqlName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
