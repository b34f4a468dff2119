import { RankdError } from '../../base/errors.ts';
import { controlCharacters, escapeControls } from '../../base/text.ts';
import type { GlobalOptions } from '../io.ts';

/** Replaces line breaks and control characters, with which untrusted text could forge lines or control the terminal. */
export function printable(text: string): string {
  return text.replaceAll(controlCharacters, '\uFFFD');
}

export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Formats a document as one line. Escapes the terminal control characters that JSON leaves as they are. */
export function jsonLine(document: Record<string, unknown>): string {
  return `${escapeControls(JSON.stringify(document))}\n`;
}

export function displayWidth(text: string): number {
  if (/^[ -~\u2026]*$/.test(text)) return text.length; // masked keys contain an ellipsis
  return charactersOf(text).reduce((sum, one) => sum + columnsOf(one), 0);
}

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

/** Wraps the text at `separator` into lines of at most `columns`. Does not split longer words. */
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

/** Splits the text into visible characters, each of which can consist of several code points. */
function charactersOf(text: string): string[] {
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

// created on first use, because creating it takes longer than printing a table
let segmenter: Intl.Segmenter | undefined;

function columnsOf(character: string): number {
  return wide.test(character) ? 2 : Array.from(character.replaceAll(zeroWidth, '')).length;
}

/** Matches wide and full-width characters, and emoji. Sources: EastAsianWidth.txt (UAX #11) and UTS #51. */
const wide =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE10-\uFE19\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{16FE0}-\u{18DFF}\u{1AFF0}-\u{1B2FF}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}|\uFE0F/u;

const zeroWidth = /[\p{Mn}\p{Me}\p{Cf}]/gu;

/** Formats one line of CSV (RFC 4180) that is safe to open in a spreadsheet and to show on a terminal. */
export function csvLine(cells: ReadonlyArray<string | number | boolean | null>): string {
  return `${cells.map((cell) => quoted(withoutFormula(printable(cell === null ? '' : String(cell))))).join(',')}\r\n`;
}

/**
 * Prepends an apostrophe to cells that a spreadsheet would evaluate as formulas, including those that begin with spaces
 * or with a full-width operator (＝＋－＠). Source: OWASP, CSV injection.
 */
function withoutFormula(text: string): string {
  return /^\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Throws `usage` if `--json` is also given, because both flags select the output format. */
export function refuseJson({ options }: { options: GlobalOptions }, flag: string): void {
  if (!options.json) return;
  throw new RankdError('usage', `--json and ${flag} can't be combined.`, { hint: `leave out --json or ${flag}` });
}
