import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CliHome, runCli } from '../support/run-cli.ts';

test.concurrent.each([
  [[], 'rankd'],
  [['key'], 'rankd key'],
  [['--data-dir', 'elsewhere', 'key'], 'rankd key'],
  [['-c', 'other.yaml', 'whitelist', '-q'], 'rankd whitelist'],
  [['key', 'create'], 'rankd key create'],
  [['--json', 'key', 'create', 'a', 'b'], 'rankd key create'],
  [['rank', 'set', 'somebody', '20'], 'rankd rank set'],
  [['history', 'list', '--limit', '0'], 'rankd history list'],
  [['history', '--nonsense-option'], 'rankd history'],
])('wrong usage %j: the second line names the help of that very command', async (args, command) => {
  const { code, stdout, stderr } = await runCli(args);
  expect(code).toBe(2);
  expect(stdout).toBe('');
  const help = `${command} --help`;
  if (args.includes('--json')) expect(JSON.parse(stderr)).toMatchObject({ code: 'usage', try: help });
  else expect(stderr).toMatch(new RegExp(`^error: .+\\.\ntry: ${help}\n$`));
});

test.concurrent('an API key in the wrong argument or the wrong file is not repeated by the error', async () => {
  using home = new CliHome();
  const { secret } = await home.json<{ secret: string }>('key', 'create', 'game');
  writeFileSync(home.path('game.key'), `${secret}\n`);
  const lines = [
    ['key', 'revoke', secret],
    ['key', 'show', secret],
    [secret],
    ['whitelist', 'add', secret],
    ['whitelist', 'add', '--file', 'game.key'],
  ];
  for (const args of [...lines, ['key', 'show', secret, '--json']]) {
    const { code, stdout, stderr } = await home.run(args);
    expect(code).toBeGreaterThan(0);
    expect(stdout + stderr).toContain('rk_live_…');
    expect(stdout + stderr).not.toContain(secret.slice(8, 20));
  }
});

test.concurrent('a duration that no calendar holds is wrong usage, and no key is made', async () => {
  using home = new CliHome();
  const { code, stderr } = await home.run(['key', 'create', 'game', '--expires', '99999999d']);
  expect(code).toBe(2);
  expect(stderr).toContain('at most 36500d');
  expect(await home.json('key', 'list')).toMatchObject({ keys: [] });
});

describe.concurrent('started by npx, which leaves no rankd on the path', () => {
  const env = { npm_command: 'exec' };

  test.each([
    [['key', 'create', 'game'], 'try: npx rankd whitelist add PLACE --key game'],
    [['key', 'show', 'nobody'], 'try: npx rankd key list'],
    [['key', 'show', 'nobody', '--json'], '"try":"npx rankd key list"'],
    [['rank', 'test', '1001', '21'], 'try: npx rankd group roles'],
    [['doctor', '--offline'], 'try: npx rankd init'],
    [['key', '--help'], '\n  npx rankd key create my-game'],
    [['key', '--help'], 'Usage: npx rankd key '],
    [['--help'], 'Usage: npx rankd ['],
  ])('%j: the commands it prints can be typed as they stand', async (args, expected) => {
    const { stdout, stderr } = await runCli(args, { env });
    expect(stdout + stderr).toContain(expected);
    expect(stdout + stderr).not.toContain('npx npx');
  });

  test('results are the same as ever', async () => {
    using home = new CliHome();
    await home.run(['rank', 'set', '1001', '20']);
    const [plain, throughNpx] = await Promise.all([
      home.run(['history', 'list', '--json']),
      home.run(['history', 'list', '--json'], { env }),
    ]);
    expect(throughNpx.stdout).toBe(plain.stdout);
  });
});
