import { expect, test } from 'vitest';
import { fragments, sourceFiles } from '../tools/count.ts';

test('no file under 30 lines has only one importer: it belongs in that file', () => {
  expect(fragments(sourceFiles()).map(({ path, importers }) => `${path}, imported by ${importers[0]}`)).toEqual([]);
});

test('a small file with one importer is found', () => {
  const lone = { path: 'src/lone.ts', lines: 29, importers: ['src/app.ts'] };
  expect(fragments([lone, { ...lone, lines: 30 }, { ...lone, importers: ['src/app.ts', 'src/main.ts'] }])).toEqual([
    lone,
  ]);
});
