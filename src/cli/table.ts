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

/** Callers' text without line breaks and control characters: it can't forge a row or drive the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, '\uFFFD');
}
