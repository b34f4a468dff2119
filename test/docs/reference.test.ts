import { expect, test } from 'vitest';
import { luauSnippet } from '../../src/cli/init/snippet.ts';
import { partIn, readPage, writtenParts } from '../support/written-pages.ts';

test.each(writtenParts)('$page has $name as the code has it; otherwise, `npm run docs` writes it anew', (part) => {
  expect(partIn(readPage(part.page), part)).toBe(part.lines().join('\n'));
});

test('docs/in-game.md shows the script for the game that `rankd init` prints', () => {
  expect(readPage('docs/in-game.md')).toContain(`\`\`\`lua\n${luauSnippet('https://rankd.example.com')}\n\`\`\`\n`);
});
