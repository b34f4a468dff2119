import { RankdError } from '../../base/errors.ts';
import type { Cli } from '../cli.ts';
import { printable } from './safe-text.ts';

/** One line of CSV (RFC 4180), its line break included. Cells are safe to open in a spreadsheet and to show on a terminal. */
export function csvLine(cells: ReadonlyArray<string | number | boolean | null>): string {
  return `${cells.map((cell) => quoted(harmless(printable(cell === null ? '' : String(cell))))).join(',')}\r\n`;
}

/**
 * Spreadsheets run cells that begin like this as formulas, in full-width forms (＝＋－＠) and after spaces too; an apostrophe makes them
 * text.
 * Source: OWASP, CSV injection.
 */
function harmless(text: string): string {
  return /^\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Throws `usage` with `--json`: that promises one document, and rows are not one. */
export function refuseJson({ options }: Pick<Cli, 'options'>, flag: string): void {
  if (!options.json) return;
  throw new RankdError('usage', `--json and ${flag} exclude each other.`, { hint: `leave --json or ${flag} out` });
}
