import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runCli as runProgram } from '../../src/cli/program.ts';
import { codeOf } from '../support/answers.ts';
import { TerminalIo } from '../support/command-io.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { runOnTerminal } from '../support/pseudo-terminal.ts';
import { CliHome, runCli } from '../support/run-cli.ts';

interface Made {
  v: number;
  created: boolean;
  key: { id: string; name: string; state: string; secrets: Array<{ masked: string }> };
  secret?: string;
}

async function accepts(home: CliHome, secret: string): Promise<boolean> {
  const { code } = await home.here(['key', 'verify', '-'], { input: `${secret}\n` });
  if (code === 0 || code === 5) return code === 0;
  throw new Error(`verify ended with ${code}`);
}

test.concurrent('a new key has 44 characters, is printed only to stdout, and is accepted at once', async () => {
  using home = new CliHome();
  const { code, stdout, stderr } = await home.here(['key', 'create', 'game']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^rk_live_[0-9A-Za-z]{36}\n$/);
  expect(stderr).not.toContain(stdout.trim());
  expect(await accepts(home, stdout.trim())).toBe(true);
  expect((await home.here(['key', 'create', 'trial', '--test'])).stdout).toMatch(/^rk_test_[0-9A-Za-z]{36}\n$/);
});

test.concurrent('a secret is printed once: it is in no later output and no file of the data directory', async () => {
  using home = new CliHome();
  const { secret = '', key } = await home.json<Made>('key', 'create', 'game');
  const rotated = await home.json<Made>('key', 'rotate', 'game');
  await home.here(['key', 'verify', '-'], { input: secret });
  const outputs = await Promise.all(
    [
      ['key', 'list'],
      ['key', 'list', '--json'],
      ['key', 'show', key.id],
      ['key', 'show', 'game', '--json', '-v'],
    ].map((args) => home.here(args)),
  );
  const files = readdirSync(home.dataDir, { recursive: true, encoding: 'utf8' }).map((name) =>
    readFileSync(join(home.dataDir, name), 'latin1'),
  );
  expect(files.join('')).toContain(key.id); // these are the right files
  for (const text of [...outputs.map(({ stdout, stderr }) => stdout + stderr), ...files]) {
    for (const shown of [secret, rotated.secret ?? '']) {
      expect(text.includes(shown)).toBe(false);
      expect(text.includes(shown.slice(8))).toBe(false);
    }
  }
});

test.concurrent('the data directory and its files belong only to the operator', async () => {
  using home = new CliHome();
  await home.here(['key', 'create', 'game']);
  expect(statSync(home.dataDir).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(home.dataDir))
    expect([name, statSync(join(home.dataDir, name)).mode & 0o777]).toEqual([name, 0o600]);
});

test.concurrent('--out writes the secret to a file with mode 0600 instead of the terminal', async () => {
  using home = new CliHome();
  const { code, stdout, stderr } = await home.here(['key', 'create', 'game', '--out', 'game.key']);
  const secret = readFileSync(home.path('game.key'), 'utf8');
  expect(code).toBe(0);
  expect(secret).toMatch(/^rk_live_[0-9A-Za-z]{36}\n$/);
  expect(statSync(home.path('game.key')).mode & 0o777).toBe(0o600);
  expect(stdout + stderr).not.toContain(secret.trim());
  expect(await accepts(home, secret.trim())).toBe(true);
});

test.concurrent('--out never overwrites a file, and then creates no key', async () => {
  using home = new CliHome();
  writeFileSync(home.path('taken'), 'precious');
  const result = await home.here(['key', 'create', 'game', '--out', 'taken']);
  expect(result).toMatchObject({ code: 4, stdout: '' });
  expect(readFileSync(home.path('taken'), 'utf8')).toBe('precious');
  expect((await home.here(['key', 'show', 'game'])).code).toBe(3);

  await home.here(['key', 'create', 'game']);
  expect((await home.here(['key', 'rotate', 'game', '--out', 'taken'])).code).toBe(4);
  expect(readFileSync(home.path('taken'), 'utf8')).toBe('precious');
});

test.concurrent('--out with a folder is a usage error with a hint', async () => {
  using home = new CliHome();
  await home.json('key', 'list');
  expect(await home.here(['key', 'create', 'game', '--out', '.'])).toMatchObject({
    code: 2,
    stderr: `error: ${home.cwd} is a folder.\ntry: name a new file in it, such as ${home.cwd}/NAME\n`,
  });
});

test.concurrent('a key that could not be created leaves no file', async () => {
  using home = new CliHome();
  await home.here(['key', 'create', 'game']);
  expect((await home.here(['key', 'create', 'game', '--out', 'game.key'])).code).toBe(4);
  expect(existsSync(home.path('game.key'))).toBe(false);
});

test.concurrent('a taken name causes exit code 4, or 0 with --if-not-exists, which does not change the key', async () => {
  using home = new CliHome();
  const first = await home.json<Made>('key', 'create', 'game', '--if-not-exists');
  expect(first.created).toBe(true);
  expect(await home.here(['key', 'create', 'game'])).toMatchObject({ code: 4, stdout: '' });

  const again = await home.json<Made>('key', 'create', 'game', '--if-not-exists');
  expect(again).toMatchObject({ v: 1, created: false, key: { id: first.key.id } });
  expect(again.secret).toBeUndefined();
  expect(await accepts(home, first.secret ?? '')).toBe(true);

  await home.here(['key', 'revoke', 'game', '-y']);
  const existing = await home.json<Made>('key', 'create', 'game', '--if-not-exists');
  expect(existing.key.id).not.toBe(first.key.id);
});

test.concurrent('--if-not-exists reports the differences between the existing key and the requested one', async () => {
  using home = new CliHome();
  await home.here(['key', 'create', 'game', '--max-rank', '50', '--scope', 'rank', 'verify']);
  const same = ['key', 'create', 'game', '--if-not-exists', '--max-rank', '50'];
  expect(await home.here(same)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^key_/),
    stderr: `Key "game" already exists; its secret can't be shown again.\nThis is stored in ${home.dataDir}; no daemon is using it.\n`,
  });
  const other = [
    'key',
    'create',
    'game',
    '--if-not-exists',
    '--test',
    '--scope',
    'verify',
    '--expires',
    '9d',
    '--system',
  ];
  const repeated = await home.here([...other, '--out', 'game.key']);
  expect(repeated).toMatchObject({ code: 0, stdout: expect.stringMatching(/^key_/) });
  expect(repeated.stderr).toContain(
    "warning: it differs from your request: the key's mode is live, but your request sets test; " +
      "the key's scope is rank and verify, but your request sets verify; " +
      'the key has no expiry, but your request has one; ' +
      "the key's maximum rank is 50, but your request sets none; " +
      'your request has --system, but the key does not\n',
  );
  expect(existsSync(home.path('game.key'))).toBe(false);
  expect((await home.json<{ differs: string[] }>(...other)).differs).toHaveLength(5);
  expect((await home.json<{ differs: string[] }>(...same)).differs).toEqual([]);
});

test.concurrent('after a rotation, the old secret works only until the overlap ends', async () => {
  using home = new CliHome();
  const { secret: first = '' } = await home.json<Made>('key', 'create', 'game');
  const { secret: second = '', key } = await home.json<Made>('key', 'rotate', 'game');
  expect(key).toMatchObject({ state: 'rotating' });
  expect(await Promise.all([first, second].map((secret) => accepts(home, secret)))).toEqual([true, true]);

  const { secret: third = '' } = await home.json<Made>('key', 'rotate', 'game', '--overlap', '0s');
  expect(await Promise.all([first, second, third].map((secret) => accepts(home, secret)))).toEqual([
    false,
    false,
    true,
  ]);

  const { secret: fourth = '' } = await home.json<Made>('key', 'rotate', 'game', '--overlap', '1s');
  await delay(1_050);
  expect(await Promise.all([third, fourth].map((secret) => accepts(home, secret)))).toEqual([false, true]);
});

test.concurrent('revoke asks first: without a terminal or -y, it exits with 2, and the key still works', async () => {
  using home = new CliHome();
  const { secret = '', key } = await home.json<Made>('key', 'create', 'game');
  const unconfirmed = await home.here(['key', 'revoke', 'game'], { input: 'y\n' });
  expect(unconfirmed).toMatchObject({ code: 2, stdout: '' });
  expect(await accepts(home, secret)).toBe(true);

  expect((await home.here(['-y', 'key', 'revoke', key.id])).code).toBe(0);
  const refused = await home.here(['key', 'verify', '-', '--json'], { input: secret });
  expect(refused).toMatchObject({ code: 5, stderr: '' });
  expect(refused.json()).toMatchObject({
    v: 1,
    accepted: false,
    reason: expect.stringContaining('the key is revoked'),
  });
  expect((await home.here(['key', 'rotate', 'game'])).code).toBe(4);

  // revoking the key again neither prompts nor records anything
  expect(await home.here(['key', 'revoke', key.id])).toMatchObject({
    code: 0,
    stdout: 'Key "game" was already revoked.\n',
  });
  const { events } = await home.json<{ events: unknown[] }>('audit', 'list', '--action', 'key.revoke');
  expect(events).toHaveLength(1);
});

test.concurrent('with --out, a terminal shows once which file has the secret, and a pipe gets its name', async () => {
  using home = new CliHome();
  const io = new TerminalIo(home);
  expect(await runProgram(['key', 'create', 'game', '--out', 'game.key'], io)).toBe(0);
  expect([io.out, io.err]).toEqual(['', expect.stringContaining(') is in game.key.')]);
  expect((await home.here(['key', 'create', 'other', '--out', 'other.key'])).stdout).toBe('other.key\n');
});

test.concurrent('a key whose rules were removed is shown with no extra rules', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game', '--max-rank', '20');
  const { stdout } = await home.here(['key', 'set', 'game', '--max-rank', 'none', '--direction', 'both']);
  expect(stdout).toBe('Key "game": no extra rules\n');
});

test.concurrent('the rules of a key are set at its creation, changed later, and shown', async () => {
  using home = new CliHome();
  const made = await home.json<Made>(
    ...['key', 'create', 'game', '--max-rank', '50', '--min-rank', '10', '--direction', 'promote'],
    ...['--self-rank', 'deny', '--system', '--rate', '60'],
  );
  const rules = { maxRank: 50, minRank: 10, direction: 'promote', selfRank: 'deny', system: true, ratePerMinute: 60 };
  expect(made.key).toMatchObject(rules);
  expect((await home.json<{ key: object }>('key', 'show', 'game')).key).toMatchObject(rules);
  expect((await home.json<{ keys: object[] }>('key', 'list')).keys).toMatchObject([rules]);
  expect((await home.here(['key', 'list'])).stdout).toContain(
    'rank 10 to 50, promote only, no self-rank, system, 60 a minute',
  );

  expect((await home.json<Made>('key', 'set', 'game', '--min-rank', 'none')).key).toMatchObject({ minRank: null });
  const set = ['key', 'set', 'game', '--max-rank', '20', '--direction', 'both', '--no-system', '--rate', 'none'];
  const { key } = await home.json<Made>(...set);
  expect(key).toMatchObject({ maxRank: 20, minRank: null, direction: null, selfRank: 'deny', system: false });
  expect(key).toMatchObject({ id: made.key.id, ratePerMinute: null });
  expect(await accepts(home, made.secret ?? '')).toBe(true);
  const { events } = await home.json<{ events: Array<{ action: string }> }>('audit', 'list');
  expect(events[0]).toMatchObject({ action: 'key.set', detail: { maxRank: { from: 50, to: 20 } } });
});

test.concurrent('rules that allow no rank are a usage error, at creation and later', async () => {
  using home = new CliHome();
  const create = ['key', 'create', 'game', '--min-rank', '20'];
  expect((await home.here([...create, '--max-rank', '10'])).code).toBe(2);
  expect((await home.here(create)).code).toBe(0);
  expect((await home.here(['key', 'set', 'game', '--max-rank', '10'])).code).toBe(2);
  expect((await home.here(['key', 'set', 'game'])).stderr).toBe(
    'error: Give at least one setting to change.\ntry: rankd key set --help\n',
  );
});

test.concurrent('verify distinguishes a mistyped key, an unknown key and a place that is not whitelisted, in plain words', async () => {
  using home = new CliHome();
  const { secret = '', key } = await home.json<Made>('key', 'create', 'game');
  using otherHome = new CliHome();
  const { secret: unknown = '' } = await otherHome.json<Made>('key', 'create', 'game');
  const mistyped = `${secret.slice(0, -1)}${secret.endsWith('a') ? 'b' : 'a'}`;
  for (const [input, args, words] of [
    [mistyped, [], /mistyped/],
    ['', [], /not a game key/],
    [unknown, [], /no such key/],
    [secret, ['--place', '77'], /whitelist/],
  ] as const) {
    const result = await home.here(['key', 'verify', '-', ...args], { input });
    expect(result.code).toBe(5);
    expect(result.stdout).toMatch(words);
    expect(result.stdout).not.toContain(key.id);
  }
});

test.concurrent('on a terminal, verify and hash ask for the key and hide it', async () => {
  using home = new CliHome();
  const { secret = '' } = await home.json<Made>('key', 'create', 'game');
  for (const [command, words] of [
    ['verify', 'yes: key "game"'],
    ['hash', 'Declare it in rankd.yaml'],
  ] as const) {
    const answers: Array<[string, string]> = [['game key (not shown): ', secret]];
    const { code, screen } = await runOnTerminal(home, ['key', command, '-'], { answers });
    expect(code, screen).toBe(0);
    expect(screen).toContain(words);
    expect(screen).not.toContain(secret);
  }
});

test.concurrent.each(['verify', 'verify game.key', 'hash game.key'])(
  'key %s explains that the key comes from standard input, and how',
  async (line) => {
    using home = new CliHome();
    const args = line.split(' ');
    expect(await home.here(['key', ...args])).toMatchObject({
      code: 2,
      stderr: `error: \`rankd key ${args[0]} -\` reads the key from standard input.\ntry: rankd key ${args[0]} - < my-game.key\n`,
    });
  },
);

test.concurrent('a command reports a database that it creates, such as in a mistyped --data-dir', async () => {
  using home = new CliHome();
  const line = ['--data-dir', 'mistyped', 'key', 'list'];
  const first = await home.here(line);
  expect(first.stderr).toContain(`There was no database in ${home.path('mistyped')}; rankd created one.\n`);
  expect((await home.here(line)).stderr).not.toContain('There was no database');
  const unnamed = `There was no database in ${home.dataDir}; rankd created one.\n`;
  expect((await home.here(['key', 'list'])).stderr).toContain(unnamed);
  expect((await home.here(['key', 'list'])).stderr).not.toContain('There was no database');
});

test.concurrent('a paused key cannot change ranks from the next request on, until it is resumed', async () => {
  using home = new CliHome();
  const secret = await home.createKey();
  await using daemon = await DaemonHere.start(home);
  const asked = async () => {
    const answer = await daemon.rank(secret);
    return [answer.status, codeOf(answer)];
  };
  expect(await asked()).toEqual([200, undefined]);
  const pause = await home.here(['key', 'pause', 'game']);
  expect(pause).toMatchObject({ code: 0, stdout: 'Key "game" is paused.\n' });
  expect(pause.stderr).toContain('rankd key resume game');
  expect(await asked()).toEqual([429, 'key_paused']);
  expect((await daemon.verify(secret)).status).toBe(200); // a paused key is still valid; only its changes are refused
  expect(await home.here(['key', 'pause', 'game'])).toMatchObject({ stdout: 'Key "game" was already paused.\n' });
  expect(await home.json('key', 'show', 'game')).toMatchObject({ key: { state: 'paused' } });
  expect(await home.here(['key', 'resume', 'game'])).toMatchObject({ stdout: 'Key "game" is active again.\n' });
  expect(await asked()).toEqual([200, undefined]);
  const { events } = await home.json<{ events: object[] }>('audit', 'list', '--action', 'key.pause');
  expect(events).toMatchObject([{ by: expect.stringMatching(/^cli:/), detail: { reason: 'by the operator' } }]);
});

test.concurrent('a revoked key cannot be paused', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  await home.json('key', 'revoke', 'game', '-y');
  expect(await home.here(['key', 'pause', 'game'])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('is revoked, so it cannot be paused'),
  });
});

test.concurrent('resuming a key that was not paused reports that and writes nothing', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  expect(await home.here(['key', 'resume', 'game'])).toMatchObject({ code: 0, stdout: 'Key "game" was not paused.\n' });
  expect(await home.json('audit', 'list', '--action', 'key.resume')).toMatchObject({ events: [] });
});

test.concurrent('key list prints one page and how to continue', async () => {
  using home = new CliHome();
  for (const name of ['a', 'b', 'c']) await home.here(['key', 'create', name]);
  const first = await home.here(['key', 'list', '--limit', '2', '--json']);
  const { keys, next } = first.json<{ keys: Array<{ id: string; name: string }>; next: string }>();
  expect([keys.map(({ name }) => name), next]).toEqual([['a', 'b'], keys[1]?.id]);
  const plain = await home.here(['key', 'list', '--limit', '2']);
  expect(plain).toMatchObject({ code: 0, stderr: `There are more keys: rankd key list --after ${next}\n` });
  const rest = (await home.here(['key', 'list', '--after', next, '--json'])).json<typeof first>();
  expect(rest).toMatchObject({ keys: [{ name: 'c' }], next: null });
  expect(await home.here(['key', 'list', '--after', 'c'])).toMatchObject({
    code: 0,
    stderr: 'There are no newer keys.\n',
  });
  expect(await home.here(['key', 'list', '--after', 'nobody'])).toMatchObject({ code: 3 });
});

test.concurrent('an error is two lines with its exit code, or with --json one document on stderr', async () => {
  using home = new CliHome();
  await home.json('key', 'list');
  const plain = await home.here(['key', 'show', 'nobody']);
  expect(plain).toMatchObject({ code: 3, stdout: '' });
  expect(plain.stderr).toMatch(/^error: [^\n]+\ntry: [^\n]+\n$/);

  const asJson = await home.here(['key', 'show', 'nobody', '--json']);
  expect(asJson).toMatchObject({ code: 3, stdout: '' });
  expect(asJson.json()).toEqual({
    v: 1,
    success: false,
    error: 'Not found',
    code: 'not_found',
    message: expect.stringContaining('nobody'),
    try: 'rankd key list',
  });
  const wrongUsage = await home.here(['key', 'create', '--nope', '--json']); // the parser fails before --json
  expect(wrongUsage).toMatchObject({ code: 2, stdout: '' });
  expect(wrongUsage.json()).toMatchObject({ v: 1, success: false, code: 'usage' });
});

test.concurrent.each([
  ['a bad name', ['key', 'create', '../x']],
  ['a bad duration', ['key', 'create', 'x', '--expires', 'soon']],
  ['a rank that cannot be a ceiling', ['key', 'create', 'x', '--max-rank', '255']],
  ['an unknown scope', ['key', 'create', 'x', '--scope', 'everything']],
  ['an unknown option', ['key', 'list', '--nope']],
  ['a missing argument', ['key', 'create']],
  ['an unknown command', ['key', 'lst']],
  ['a command group alone', ['key']],
])('%s is a usage error: exit code 2 and one sentence', async (_what, args) => {
  using home = new CliHome();
  const result = await home.here(args);
  expect(result).toMatchObject({ code: 2, stdout: '' });
  expect(result.stderr).toMatch(/^error: [A-Z`][^\n]*[^.\n]\.\ntry: [^\n]+\n$/);
});

test.concurrent('global options can be anywhere on the line', async () => {
  using home = new CliHome();
  const elsewhere = join(home.folder, 'elsewhere');
  await home.here(['key', 'create', 'game', '--data-dir', elsewhere]);
  const lines = [
    ['--json', '--data-dir', elsewhere, 'key', 'list'],
    ['key', '--json', '--data-dir', elsewhere, 'list'],
    ['key', 'list', `--data-dir=${elsewhere}`, '--json'],
  ];
  for (const { code, json } of await Promise.all(lines.map((args) => home.here(args)))) {
    expect(code).toBe(0);
    expect(json<{ keys: unknown[] }>().keys).toHaveLength(1);
  }
  expect(existsSync(join(home.dataDir, 'rankd.db'))).toBe(false);
});

test.concurrent('-q prints only the result', async () => {
  using home = new CliHome();
  expect(await home.here(['key', 'create', 'game', '-q'])).toMatchObject({ code: 0, stderr: '' });
});

test.concurrent('without a terminal, no escape byte is printed, even if the environment or an argument contains one', async () => {
  using home = new CliHome();
  const env = { FORCE_COLOR: '1', CLICOLOR_FORCE: '1', TERM: 'xterm-256color' };
  const lines = [
    ['--help'],
    ['key', 'create', '--help'],
    ['key', 'list'],
    ['key', 'show', '\u001b[31mred'],
    ['key', 'create', '\u001b[31mred'],
    ['\u001b[31mred'],
    ['workspace', 'show'],
  ];
  await home.here(['key', 'create', 'game']);
  for (const { stdout, stderr } of await Promise.all(lines.map((args) => home.here(args, { env })))) {
    expect(stdout + stderr).not.toContain('\u001b');
  }
});

test.concurrent('help and version exit with 0 and need no data directory', async () => {
  using blank = new CliHome();
  for (const args of [['--help'], ['key', 'rotate', '-h'], ['-V'], ['version']]) {
    const result = await blank.run(args);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).not.toBe('');
  }
  expect(existsSync(blank.dataDir)).toBe(false);
  expect((await runCli(['key', 'rotate', '--help'])).stdout).toMatch(/Examples:\n {2}rankd key rotate/);
});

test('during a rotation, list and show report the last use of the old secret, with its time and place', async () => {
  using home = new CliHome();
  const { secret: old = '' } = await home.json<Made>('key', 'create', 'game');
  const masked = `${old.slice(0, 11)}…${old.slice(-3)}`;
  await home.here(['whitelist', 'add', '77']);
  await home.here(['key', 'rotate', 'game', '--overlap', '1h']);
  await using daemon = await DaemonHere.start(home);
  expect((await daemon.verify(old, 77)).headers['sunset']).toMatch(/ GMT$/);
  await daemon.stop();

  const { keys } = await home.json<{ keys: Array<{ secrets: object[] }> }>('key', 'list');
  expect(keys[0]?.secrets).toMatchObject([
    { lastUsedAt: null, lastPlaceId: null },
    { masked, lastUsedAt: expect.stringMatching(/^2\d{3}-.*Z$/), lastPlaceId: 77 },
  ]);
  const rows = (await home.here(['key', 'list'])).stdout.split('\n');
  expect(rows.find((row) => row.includes(masked))).toMatch(/^game .* 2\d{3}-\S+Z +77 +2\d{3}-\S+Z .* key_\w+$/);
  const { stdout } = await home.here(['key', 'show', 'game']);
  expect(stdout).toMatch(/secret +\S+, no use recorded yet \(a daemon records uses once a minute\)\n/);
  expect(stdout).toMatch(
    new RegExp(`secret +${masked}, replaced, accepted until \\S+Z, last used \\S+Z from place 77\\n`),
  );
  expect((await home.here(['status'])).stdout).toMatch(
    /^old secrets +STILL USED: the old secret of game, last from place 77 at \S+Z; it expires at \S+Z, /m,
  );
});
