import { printable } from './safe-text.ts';

/** Aligned columns under their headings; the last column is not padded. No heading line without rows. */
export function table(headings: string[], rows: string[][]): string {
  if (rows.length === 0) return '';
  const lines = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(printable))];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
