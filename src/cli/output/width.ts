/** How many columns of a terminal a text takes. */
export function displayWidth(text: string): number {
  if (/^[ -~\u2026]*$/.test(text)) return text.length; // with the ellipsis of masked keys
  return charactersOf(text).reduce((sum, one) => sum + columnsOf(one), 0);
}

/** The text if it takes at most `columns`; else as much of it as fits, and an ellipsis. */
export function fitted(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let [kept, left] = ['', columns - 1];
  for (const character of charactersOf(text)) {
    left -= columnsOf(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept.trimEnd()}…`;
}

/** The text in lines of at most `columns`, broken at `separator`. A word that is longer has a line of its own, and is whole. */
export function wrapped(text: string, columns: number, separator = ' '): string[] {
  const lines: string[] = [];
  let line: string | undefined;
  for (const word of text.split(separator)) {
    const longer: string = line === undefined ? word : `${line}${separator}${word}`;
    if (line !== undefined && displayWidth(longer) > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line ?? ''];
}

/** Characters as a person sees them; each can be several code points. */
function charactersOf(text: string): string[] {
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

let segmenter: Intl.Segmenter | undefined; // made only when needed: making it takes longer than printing a table

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
