import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { routeRuleTable } from '../http/route-rules.ts';

const root = new URL('../../', import.meta.url);

test('SECURITY.md is in the package, and README links to it', () => {
  const { files } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  expect(files).toContain('SECURITY.md');
});

const page = readFileSync(new URL('SECURITY.md', root), 'utf8');
const rows = [...page.matchAll(/^\| against \|.*\n\|.*\n((?:\|.*\n)+)/gm)].flatMap(([, body = '']) =>
  body
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(1, -1).split('|')),
);

test('SECURITY.md begins with assets and trust boundaries, and has a section for each boundary', () => {
  const titles = [...page.matchAll(/^##+ (.*)$/gm)].map(([, title]) => title);
  expect(titles.slice(0, 2)).toEqual(['What rankd protects', 'Who is trusted with what']);
  expect(page).toContain('```mermaid');
  const numbered = titles.filter((title) => /^\d\. /.test(title ?? ''));
  expect(numbered.map((title) => Number(title?.[0]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(rows.length).toBeGreaterThan(25);
});

test.each(rows.map(([against = '', , tests = '']) => ({ against: against.trim(), tests: tests.split(', ') })))(
  'SECURITY.md names existing tests against $against',
  ({ tests }) => {
    const files = tests.map((name) => name.replaceAll('`', '').trim());
    const missing = files.filter((file) => !file.startsWith('test/') || !existsSync(new URL(file, root)));
    expect(missing).toEqual([]);
  },
);

const named = [...page.matchAll(/`(test\/[\w/.-]+)`: \*(.+?)\*/g)].map(([, file = '', name = '']) => ({ file, name }));

test('SECURITY.md names the test that runs each cell of its table of routes and rules', () => {
  expect(named).not.toEqual([]);
  for (const { file, name } of named) expect(readFileSync(new URL(file, root), 'utf8')).toContain(`'${name}`);
  expect(
    routeRuleTable()
      .flatMap((row) => row.split(' | '))
      .filter((cell) => cell.trim() === ''),
  ).toEqual([]);
});
