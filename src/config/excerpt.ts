/**
 * The line of the file that a problem is in, with a caret below the place. It shows names, and at the place itself short plain
 * words (`isKnown`: a setting or its value). Everything else may be a secret. `undefined` if nothing is left to show.
 */
export function excerpt(
  lineText: string,
  { line, col, isKnown }: { line: number; col: number; isKnown: boolean },
): string | undefined {
  const before = lineText.slice(0, col - 1).replaceAll('\t', ' ');
  const lead = /^[\s-]*(\w+:\s+)*$/.test(before) ? before : `${/^\s*/.exec(before)?.[0]}… `;
  const word = (isKnown && plainWord.exec(lineText.slice(col - 1))?.[0]) || '…';
  if (!/\w/.test(lead + word)) return undefined;
  const number = String(line).padStart(5);
  return `${number} | ${lead}${word}\n${' '.repeat(number.length)} | ${' '.repeat(lead.length)}${'^'.repeat(word.length)}`;
}

const plainWord = /^([\w.-]{1,24}|"[\w.: -]{1,24}"|'[\w.: -]{1,24}')(?=[\s:,\]}]|$)/;
