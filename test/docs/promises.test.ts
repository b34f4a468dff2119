import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const page = read('docs/promises.md');
const rows = page.match(/^\| (?!promise |---).+$/gm) ?? [];
const promises = rows.map((row) => {
  const [, promise = '', file = '', name = ''] = /^\| (.+?) \| `(test\/\S+)`: (.+?) \| .+ \|$/.exec(row) ?? [row, row];
  return { promise, file, name };
});

test.each(promises)('rankd promises: $promise A test shows it', ({ file, name }) => {
  expect(existsSync(new URL(file, root)), file).toBe(true);
  expect(read(file)).toContain(`'${name}'`);
});

test('docs/promises.md has a promise about every state of a change', () => {
  const states = [...page.matchAll(/ is [`*](\w+)[`*]/g)].map(([, state]) => state);
  expect(states).toEqual(['pending', 'applied', 'refused', 'failed', 'unknown', 'reconciled']);
});
