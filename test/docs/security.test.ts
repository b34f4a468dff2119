import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const security = readFileSync(new URL('SECURITY.md', root), 'utf8');
const readme = readFileSync(new URL('README.md', root), 'utf8');

const rows = [...security.matchAll(/^\| ([^|]+) \| [^|]+ \| (`test\/[^|]+) \|$/gm)];

test.each(rows.map(([, against = '', tests = '']) => ({ against, tests: tests.split(', ') })))(
  'SECURITY names tests that there are against $against',
  ({ tests }) => {
    for (const file of tests) expect(existsSync(new URL(file.replaceAll('`', ''), root)), file).toBe(true);
  },
);

test('SECURITY names tests for every row, and tells the figures that README tells', () => {
  const table = security.split('\n').filter((line) => line.startsWith('|'));
  expect(rows.length).toBe(table.length - 2);
  const figure = (text: string, pattern: RegExp) => pattern.exec(text)?.[1] ?? expect.fail(`${pattern} is missing`);
  expect(figure(security, /demote (\d+) members/)).toBe(figure(readme, /500 demotions at once reach (\d+) members/));
  expect(figure(security, /; (\d+) members with many/)).toBe(figure(readme, /with many leaked keys (\d+) members/));
  const setting = (name: string) => figure(readme, new RegExp(`^\\| \`${name}\` \\| \`(\\w+)\``, 'm'));
  expect(figure(security, /in any (\d+) minutes/)).toBe(setting('policy.breaker.window').replace('m', ''));
  expect(figure(security, /(\d+) times a minute/)).toBe(setting('limits.rank'));
});
