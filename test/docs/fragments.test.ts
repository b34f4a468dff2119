import { expect, test } from 'vitest';
import { fragments, sourceFiles } from '../tools/count.ts';

/** The engines of the store are rooms with many small parts of their own. */
const files = sourceFiles().filter(({ path }) => !path.startsWith('src/stores/'));

test('no file under 30 lines is imported by one other file alone: it belongs into that file', () => {
  expect(fragments(files).map(({ path, importers }) => `${path}, imported by ${importers[0]}`)).toEqual([]);
});

test('a small file with one importer is found', () => {
  const lone = { path: 'src/lone.ts', lines: 29, importers: ['src/app.ts'] };
  expect(fragments([lone, { ...lone, lines: 30 }, { ...lone, importers: ['src/app.ts', 'src/main.ts'] }])).toEqual([
    lone,
  ]);
});
