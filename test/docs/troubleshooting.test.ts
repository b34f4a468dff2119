import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { connectionCauses } from '../../src/base/connection-cause.ts';
import { reasons } from '../../src/base/errors.ts';

const root = new URL('../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, root), 'utf8');
const page = read('docs/troubleshooting.md');
const code = '`[a-z]+(?:_[a-z]+)*`';
const rows = [...page.matchAll(new RegExp(`^\\| (${code}(?:, ${code})*) \\| (.+) \\|$`, 'gm'))].map(
  ([, codes = '', cells = '']) => ({
    codes: codes.replaceAll('`', '').split(', '),
    cells: cells.split(' | '),
  }),
);

test('docs/troubleshooting.md has each code that a game or an operator can get exactly once, and no other', () => {
  const moduleCode = /(?:resultOf|problemBetween)\(\s*"(\w+)"|\tcode = "(\w+)"/g;
  const moduleCodes = [...read('src/game/Rankd/init.luau').matchAll(moduleCode)].map(
    ([, name, other]) => name ?? other,
  );
  const all = new Set([...Object.keys(reasons), ...moduleCodes.filter((name) => name !== 'ok')]);
  expect(rows.flatMap(({ codes }) => codes).toSorted()).toEqual([...all].toSorted());
});

const [, gameSection = ''] = page.split("\n## In the game's output window\n");
const withoutCode = [
  ...(gameSection.split('\n## ')[0] ?? '').matchAll(/^\| ((?!`|you read|code|---).+?) \| .+ \| .+ \|$/gm),
];
const quoted = [
  ...rows.filter(({ cells }) => cells.length === 3),
  ...withoutCode.map(([, sentences = '']) => ({ codes: [sentences], cells: [sentences] })),
];

test.each(quoted)('the messages of $codes are those in the code', ({ cells: [sentences = ''] }) => {
  const text = sourceText();
  const pieces = sentences.split(/…|; |, or: /).map((piece) => piece.trim().replace(/[,.:]$/, ''));
  expect(pieces.filter((piece) => piece.length > 8 && !text.includes(piece))).toEqual([]);
});

test('docs/troubleshooting.md has each cause of a failed connection, with its message', () => {
  const [, section = ''] = page.split("\n## A server can't be reached\n");
  const causes = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| ([^`|]+) \| (`[^|]+) \| .+ \|$/gm)];
  const named = causes.flatMap(([, , names = '']) => names.replaceAll('`', '').split(', '));
  expect([...named, 'failed'].toSorted()).toEqual(connectionCauses.toSorted());
  const words = causes.flatMap(([, texts = '']) => texts.split('; '));
  expect(words.filter((text) => !sourceText().includes(text))).toEqual([]);
});

let sources: string | undefined;

function sourceText(): string {
  const files = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' });
  sources ??= files
    .filter((file) => /\.(ts|luau)$/.test(file))
    .map((file) => read(`src/${file}`))
    .join('\n')
    .replaceAll(/['"`] *(?:\+|\n\s*\.\.)\s*['"`]/g, '')
    .replaceAll("\\'", "'");
  return sources;
}
