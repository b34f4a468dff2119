import { mkdirSync, readdirSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

async function homeWithKey(): Promise<CliHome> {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  await home.json('key', 'create', 'game');
  return home;
}

test.each<[args: string[], code: number, words: RegExp]>([
  [['key', 'create', 'new', '--out', ''], 2, /--out.* name of a new file/],
  [['key', 'create', 'new', '--out', '-'], 2, /--out.* name of a new file/],
  [['key', 'rotate', 'game', '--out', 'nowhere/new.key'], 3, /try: mkdir -p .*nowhere/],
  [['key', 'hash', '--new', ''], 2, /--new/],
  [['key', 'hash', '--new', 'folder'], 2, /folder is a folder.*\ntry: name a new file in it/],
  [['whitelist', 'add', '--file', 'folder'], 2, /folder is a folder.*\ntry: name a file/],
  [['--data-dir', '', 'key', 'list'], 2, /--data-dir/],
  [['--config', '', 'config', 'check'], 2, /--config/],
  [['rank', 'suspend', '1001', '--for', '0s'], 2, /--for.* duration above 0s/],
  [
    ['--config', '/dev/zero', 'config', 'check'],
    78,
    /\/dev\/zero is larger than 1000000 bytes.*\ntry: name the right file/,
  ],
  [
    ['whitelist', 'add', '--file', '/dev/zero'],
    2,
    /\/dev\/zero has more than 64000000 bytes.*\ntry: name the right file/,
  ],
  [['rank', 'test', '1001', '20', '--place', '42'], 2, /--place.*\ntry: add --key/],
  [['history', 'undo', '--undo', 'undo_typo', '-y'], 3, /undo_typo.*\ntry: rankd audit list --action history.undo/],
  [['history', 'export', '--json', '--format', 'csv'], 2, /--json/],
  [['audit', 'list', '--json', '--export', 'csv'], 2, /--json/],
  [['audit', 'list', '--follow', '--until', '1h'], 2, /--follow.*--until|--until.*--follow/],
  [['history', 'list', '--since', '2026-02-30'], 2, /--since/],
  [['history', 'list', '--since', 'today'], 2, /a date such as 2026-05-01/],
  [['history', 'list', '--since', '1h', '--until', '2h'], 2, /--since must be before --until/],
  [['audit', 'list', '--since', '1h', '--until', '2h'], 2, /--since must be before --until/],
  [['webhook', 'redeliver', 'bot', '--since', '1h', '--until', '2h'], 2, /--since must be before --until/],
  [['audit', 'list', '--action', 'key.revoked'], 2, /no action "key.revoked"\.\ntry: --action key.revoke\n/],
  [['audit', 'list', '--action', 'nonsense'], 2, /\ntry: --action takes one of rank\.pending, /],
  [
    ['rank', 'promote', 'Newcomer', 'Ann'],
    2,
    /oo many arguments.*\ntry: several members.*, then rankd rank promote --file FILE/,
  ],
  [
    ['rank', 'set', 'Ann', 'Senior', 'Officer'],
    2,
    /oo many arguments.*\ntry: put a role name with spaces in quotes; .*rankd rank set RANK --file FILE/,
  ],
  [['history', 'list', '--limit'], 2, /error: `--limit` needs a value\.\n/],
  [['store', 'copy'], 2, /error: `--from` is required\.\n/],
  [['webhook', 'add', 'https://bot.example/x'], 2, /name can't be.*\ntry: the address.*--url-file FILE/],
  [['webhook', 'add', 'bot', 'https://bot.example/x'], 2, /oo many arguments.*\ntry: the address.*--url-file FILE/],
  [
    ['webhook', 'add', 'bot', '--url', 'https://bot.example/x'],
    2,
    /nknown option.*\ntry: the address.*--url-file FILE/,
  ],
  [['history', 'undo', '--key', 'game', '--until', '2026-04-31T12:00Z'], 2, /--until/],
])('%j exits with %i and gives the reason', async (args, code, words) => {
  const home = await homeWithKey();
  mkdirSync(home.path('folder'));
  const result = await home.here(args);
  expect({ code: result.code, output: result.stdout + result.stderr }).toEqual({
    code,
    output: expect.stringMatching(words),
  });
  expect(readdirSync(home.cwd)).toEqual(['folder']);
});

test('a line break in an argument does not add a line to an error', async () => {
  const home = await homeWithKey();
  for (const args of [
    ['key', 'show', 'a\nb'],
    ['key', 'show', 'game', '--a\nb'],
    ['a\nb'],
    ['rank', 'test', '1\n2', '20'],
  ]) {
    const { stderr } = await home.here(args);
    expect(stderr).toMatch(/^error: .+\ntry: .+\n$/);
  }
});

test('the help of key rotate shows the default overlap as a valid value', async () => {
  const home = await homeWithKey();
  expect((await home.here(['key', 'rotate', '--help'])).stdout).toContain('(default: 24h)');
});

test('rank test --json has the same hint as the text output', async () => {
  const home = await homeWithKey();
  const { checks } = (await home.here(['rank', 'test', '1001', '77', '--json'])).json<{
    checks: Array<{ state: string }>;
  }>();
  expect(checks.find(({ state }) => state === 'FAIL')).toMatchObject({ try: 'rankd group roles' });
});
