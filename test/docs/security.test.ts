import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { routeRuleTable } from '../http/route-rules.ts';

const root = new URL('../../', import.meta.url);

test('SECURITY.md is in the package, whose README leads to it', () => {
  const { files } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  expect(files).toContain('SECURITY.md');
});

const page = readFileSync(new URL('SECURITY.md', root), 'utf8');
const table = page
  .replace(/<!-- every route.+?<!-- end -->/s, '')
  .replace(/## Limits of every listener.+?(?=\n## )/s, '') // test/http/listeners.test.ts checks these
  .split('\n')
  .filter((line) => line.startsWith('|'));
const rows = table.slice(2).map((line) => line.slice(1, -1).split('|'));

test.each(rows.map(([against = '', , tests = '']) => ({ against: against.trim(), tests: tests.split(', ') })))(
  'SECURITY names tests that there are against $against',
  ({ tests }) => {
    const files = tests.map((name) => name.replaceAll('`', '').trim());
    const missing = files.filter((file) => !file.startsWith('test/') || !existsSync(new URL(file, root)));
    expect(missing).toEqual([]);
  },
);

const named = [...page.matchAll(/`(test\/[\w/.-]+)`: \*(.+?)\*/g)].map(([, file = '', name = '']) => ({ file, name }));

test('SECURITY names the test that runs each cell of its table of routes and rules', () => {
  expect(named).not.toEqual([]);
  for (const { file, name } of named) expect(readFileSync(new URL(file, root), 'utf8')).toContain(`'${name}`);
  expect(
    routeRuleTable()
      .flatMap((row) => row.split(' | '))
      .filter((cell) => cell.trim() === ''),
  ).toEqual([]);
});
