import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

const page = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8');

/** The commands that look, on a home with one of each; `undo` changes nothing either. */
const commands = (change: string) => [
  ...['key list', 'key show game', 'whitelist list', 'workspace show', 'webhook list', 'webhook show bot'],
  ...['rank show 1001', 'rank test 1001 50', 'suspension list', 'suspension show 1002', 'group show', 'group roles'],
  ...['history list', `history show ${change}`, `history undo ${change} --dry-run`, 'audit list', 'audit verify'],
  ...['status', 'doctor --offline', 'db check', 'backup copy.db', 'config show', 'config get server.port'],
  ...['config check --offline', 'config path', 'game list', 'version'],
];

test('docs/commands.md has the fields of each document that --json prints', async () => {
  using home = new CliHome();
  await home.createKey();
  await home.here(['webhook', 'add', 'bot', '--no-test', '--out', 'bot.secret'], { input: 'https://93.184.215.14/x' });
  const { change } = await home.json<{ change: { id: string } }>('rank', 'set', '1001', '20', '-y');
  await home.json('rank', 'suspend', '1002', '--for', '1h', '-y');
  const rows = [];
  for (const command of commands(change.id)) {
    const { stdout } = await home.here([...command.split(' '), '--json']);
    rows.push(rowOf(command.replace(change.id, 'chg_…'), JSON.parse(stdout)));
  }
  const part = /(?<=## What `--json` prints\n)[^#]+/.exec(page)?.[0] ?? '';
  expect(part.split('\n').filter((line) => line.startsWith('| `'))).toEqual(rows);
});

/** e.g. `| key list | keys[] (id, name) |` */
function rowOf(command: string, { v: _, ...document }: Record<string, unknown>): string {
  const fields = Object.entries(document).map(([name, value]) => {
    const [first] = Array.isArray(value) ? value : [value];
    const inner = first !== null && typeof first === 'object' ? ` (${Object.keys(first).join(', ')})` : '';
    return `\`${name}${Array.isArray(value) ? '[]' : ''}\`${inner}`;
  });
  return `| \`${command}\` | ${fields.join(', ')} |`;
}
