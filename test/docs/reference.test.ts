import { expect, test } from 'vitest';
import { partIn, readPage, writtenParts } from '../support/written-pages.ts';

test.each(writtenParts)('$page has $name as the code has it; otherwise, run `npm run docs`', (part) => {
  expect(partIn(readPage(part.page), part)).toBe(part.lines().join('\n'));
});
