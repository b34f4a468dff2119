import { expect, test } from 'vitest';
import { partIn, readPage, writtenParts } from '../support/written-pages.ts';

test.each(writtenParts)('$name in $page matches the code; if not, run `npm run docs`', (part) => {
  expect(partIn(readPage(part.page), part)).toBe(part.lines().join('\n'));
});
