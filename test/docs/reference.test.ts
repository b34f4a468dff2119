import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { luauSnippet } from '../../src/cli/init/snippet.ts';
import { everyCommand } from '../support/every-command.ts';
import { errorTable, exitTable, keySettingsTable, settingsTable } from '../support/reference-tables.ts';

const read = (page: string) => readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');

test.each([
  ['docs/api.md', 'every error code with its status and words', errorTable],
  ['docs/commands.md', 'every exit code with its errors', exitTable],
  ['docs/settings.md', 'every setting with its default', settingsTable],
  ['docs/settings.md', 'every setting of a declared key', keySettingsTable],
])('%s lists %s, as the code has them', (page, _, table) => {
  const text = read(page);
  const lines = table();
  const beginning = lines.slice(0, 3).join('\n');
  const listed = text.slice(text.indexOf(beginning)).split('\n\n', 1)[0]?.trimEnd().split('\n');
  expect(listed).toEqual(lines);
});

test('docs/commands.md lists every command, and none that does not exist', () => {
  const [, rows = ''] = /\| command \| what it does \|\n.*\n((?:\|.*\n)+)/.exec(read('docs/commands.md')) ?? [];
  const listed = rows.split('\n').flatMap((row) => commandsOf(row.split('|')[1] ?? ''));
  expect(listed.toSorted(), 'in the table of commands').toEqual(everyCommand.toSorted());
});

test('docs/in-game.md shows the script for the game that `rankd init` prints', () => {
  expect(read('docs/in-game.md')).toContain(`\`\`\`lua\n${luauSnippet('https://rankd.example.com')}\n\`\`\`\n`);
});

/** "`key create`, `verify -`" → key create, key verify. */
function commandsOf(cell: string): string[] {
  const names = [...cell.matchAll(/`([a-z ]+?)(?: -)?`/g)].map(([, name = '']) => name);
  const [noun, verb] = names[0]?.split(' ') ?? [];
  return names.map((name) => (verb === undefined || name.includes(' ') ? name : `${noun} ${name}`));
}
