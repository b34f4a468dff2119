import { controlCharacters, escapeControls } from '../../base/escape-controls.ts';

/** Callers' text without line breaks and control characters: it can't forge a row or drive the terminal. */
export function printable(text: string): string {
  return text.replaceAll(controlCharacters, '\uFFFD');
}

/** As `printable`, but for text whose line breaks are rankd's own. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** A document on a line of its own. JSON leaves some characters as they are that a terminal obeys. */
export function jsonLine(document: Record<string, unknown>): string {
  return `${escapeControls(JSON.stringify(document))}\n`;
}
