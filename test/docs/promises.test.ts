import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const [, section = ''] = read('docs/architecture.md').split('## What rankd promises about a change');
const promises = [...section.matchAll(/^\|(.*?)\| (.+?) \| .+? \| `(test\/\S+)` \| (.+?) \|$/gm)];

test.each(promises.map(([, , promise, file, name]) => ({ promise, file: String(file), name: String(name) })))(
  'rankd promises: $promise A test shows it',
  ({ file, name }) => {
    expect(existsSync(new URL(file, root)), file).toBe(true);
    expect(read(file)).toContain(`'${name}'`);
  },
);

test('rankd promises something of every state that a change can have', () => {
  const states = promises.map(([, state]) => state?.replaceAll('`', '').trim()).filter(Boolean);
  expect(states).toEqual(['pending', 'applied', 'refused', 'failed', 'unknown', 'reconciled']);
});
