import { displayWidth } from './display-width.ts';
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
