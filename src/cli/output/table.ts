import { printable } from './safe-text.ts';

/** One thing for a person: a line for each field of its document that has a value. */
export function facts(document: Record<string, unknown>): string {
  const present = Object.entries(document).filter(([, value]) => value !== null);
  const rows = present.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : String(value)]);
  return table(['field', 'value'], rows);
}

/** Aligned columns under their headings; the last column is not padded. No heading line without rows. */
export function table(headings: string[], rows: string[][]): string {
  if (rows.length === 0) return '';
  const lines = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(printable))];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => displayWidth(line[column] ?? ''))));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - displayWidth(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** How many columns of a terminal a text takes. */
export function displayWidth(text: string): number {
  if (/^[ -~\u2026]*$/.test(text)) return text.length; // with the ellipsis of masked keys
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => columnsOf(segment)).reduce((sum, one) => sum + one, 0);
}

let segmenter: Intl.Segmenter | undefined; // made only when needed: making it takes longer than printing a table

/** `character`: one as a person sees it; it can be several code points. */
function columnsOf(character: string): number {
  return wide.test(character) ? 2 : Array.from(character.replaceAll(zeroWidth, '')).length;
}

/**
 * Matches what begins with a wide or full-width code point, or is shown as an emoji.
 * Sources: Unicode's EastAsianWidth.txt (UAX #11) and emoji presentation (UTS #51).
 */
const wide =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE10-\uFE19\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{16FE0}-\u{18DFF}\u{1AFF0}-\u{1B2FF}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}|\uFE0F/u;

const zeroWidth = /[\p{Mn}\p{Me}\p{Cf}]/gu;
