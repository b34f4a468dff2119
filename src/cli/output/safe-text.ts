import { controlCharacters, escapeControls } from '../../base/text.ts';

/** Replaces line breaks and control characters in callers' text, so that it can't forge a row or control the terminal. */
export function printable(text: string): string {
  return text.replaceAll(controlCharacters, '\uFFFD');
}

/** As `printable`, for text whose line breaks are rankd's own. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** A document on a line of its own. JSON does not escape every character that controls a terminal. */
export function jsonLine(document: Record<string, unknown>): string {
  return `${escapeControls(JSON.stringify(document))}\n`;
}
