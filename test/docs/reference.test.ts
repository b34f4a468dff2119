import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { luauSnippet } from '../../src/cli/init/snippet.ts';
import { everyCommand } from '../support/every-command.ts';
import { errorTable, exitTable, keySettingsTable, settingsTable } from '../support/readme-tables.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test.each([
  ['every error code with its status and words', errorTable],
  ['every exit code with its errors', exitTable],
  ['every setting with its default', settingsTable],
  ['every setting of a declared key', keySettingsTable],
])('README lists %s, as the code has them', (_, table) => {
  const lines = table();
  const beginning = lines.slice(0, 3).join('\n');
  const listed = readme.slice(readme.indexOf(beginning)).split('\n\n', 1)[0]?.trimEnd().split('\n');
  expect(listed).toEqual(lines);
});

test('README lists every command, and none that there is not', () => {
  const [, rows = ''] = /\| command \| what it does \|\n.*\n((?:\|.*\n)+)/.exec(readme) ?? [];
  const listed = rows.split('\n').flatMap((row) => commandsOf(row.split('|')[1] ?? ''));
  expect(listed.toSorted(), "in README's table of commands").toEqual(everyCommand.toSorted());
});

test('README shows the script for the game that `rankd init` prints', () => {
  expect(readme).toContain(`\`\`\`lua\n${luauSnippet('https://rankd.example.com')}\n\`\`\`\n`);
});

/** "`key create`, `verify -`" → key create, key verify. */
function commandsOf(cell: string): string[] {
  const names = [...cell.matchAll(/`([a-z ]+?)(?: -)?`/g)].map(([, name = '']) => name);
  const [noun, verb] = names[0]?.split(' ') ?? [];
  return names.map((name) => (verb === undefined || name.includes(' ') ? name : `${noun} ${name}`));
}
