import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { codeOf, rankBody } from '../support/answers.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';
import type { Serving } from '../support/serving.ts';

interface Declared {
  name: string;
  hash: string;
  more?: readonly string[];
}

/** Declares these keys in rankd.yaml; the first entry begins on line 4. */
function configure(home: CliHome, ...keys: Declared[]): void {
  const entries = keys.flatMap(({ name, hash, more = [] }) => [
    `  - name: ${name}`,
    `    hash: ${hash}`,
    ...more.map((line) => `    ${line}`),
  ]);
  const lines = ['# what this rankd is for', 'platform: { kind: simulated }', 'keys:', ...entries];
  writeFileSync(home.path('rankd.yaml'), `${lines.join('\n')}\n`);
}

async function newSecret(home: CliHome, file: string): Promise<{ secret: string; hash: string }> {
  const { stdout, code } = await home.here(['key', 'hash', '--new', file]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^[\da-f]{64}\n$/)]);
  return { secret: readFileSync(home.path(file), 'utf8').trim(), hash: stdout.trim() };
}

test.concurrent('key hash prints the hash of an existing or a new secret, and stores nothing', async () => {
  using home = new CliHome();
  const { secret, hash } = await newSecret(home, 'game.key');
  expect(secret).toMatch(/^rk_live_\w{36}$/);
  expect(statSync(home.path('game.key')).mode & 0o777).toBe(0o600);
  expect(await home.here(['key', 'hash', '-'], { input: `${secret}\n` })).toMatchObject({
    code: 0,
    stdout: `${hash}\n`,
  });
  expect(await home.json('key', 'hash', '--new', 'trial.key', '--test')).toMatchObject({
    mode: 'test',
    out: 'trial.key',
  });

  expect((await home.here(['key', 'hash', '--new', 'game.key'])).code).toBe(4);
  const mistyped = await home.here(['key', 'hash', '-'], { input: `${secret.slice(0, -1)}_` });
  expect(mistyped).toMatchObject({ code: 5, stdout: '' });
  expect(mistyped.stderr).not.toContain(secret.slice(12, -1));
  for (const args of [[], ['-', '--new', 'other.key']])
    expect((await home.here(['key', 'hash', ...args])).code).toBe(2);
  expect(existsSync(home.dataDir)).toBe(false);
});

test('a declared key works in the daemon, shows its declaration, and can be changed only in the file', {
  timeout: 60_000,
}, async () => {
  using home = new CliHome();
  const { secret, hash } = await newSecret(home, 'game.key');
  configure(home, { name: 'game', hash, more: ['max_rank: 20', 'whitelist:', '  - 77', '  - 78'] });
  expect((await home.here(['key', 'list'])).stderr).toContain(
    'The configuration declares game, which the daemon creates',
  );
  await using daemon = await DaemonHere.start(home);
  expect((await daemon.verify(secret, 77)).status).toBe(200);
  const promotion = { key: secret, body: rankBody({ newRankId: 50 }) };
  expect(codeOf(await daemon.post('/v1/ranker?placeid=78', promotion))).toBe('rank_not_allowed');

  const { key } = await home.json<{ key: object }>('key', 'show', 'game');
  expect(key).toMatchObject({
    name: 'game',
    maxRank: 20,
    declaredIn: 'rankd.yaml:4',
    whitelist: [{ placeId: 77 }, {}],
  });
  const listed = await Promise.all([
    home.here(['key', 'list']),
    home.here(['whitelist', 'list']),
    home.here(['key', 'show', 'game']),
  ]);
  for (const { stdout } of listed) expect(stdout).toMatch(/rankd\.yaml:\d/);
  expect((await home.here(['rank', 'test', '1001', '20', '--key', 'game', '--place', '77'])).code).toBe(0);

  const refusals = [
    ['key', 'revoke', 'game'],
    ['key', 'revoke', 'game', '-y'],
    ['key', 'rotate', 'game', '--out', 'new.key'],
    ['key', 'set', 'game', '--max-rank', 'none'],
    ['key', 'create', 'game'],
    ['whitelist', 'remove', '77'],
    ['whitelist', 'disable', '77'],
    ['whitelist', 'add', '77', '--note', 'lobby'],
  ];
  for (const args of refusals) {
    const { code, stderr } = await home.here(args);
    expect([args.join(' '), code]).toEqual([args.join(' '), 4]);
    if (args[1] !== 'create')
      expect(stderr).toMatch(/^error: .* is declared in rankd\.yaml:[48]; edit it there\.\ntry: /);
  }
  expect(existsSync(home.path('new.key'))).toBe(false);
  expect((await home.here(['whitelist', 'add', '79'])).code).toBe(0);
  expect((await daemon.verify(secret, 79)).status).toBe(200);
});

test('a key that is removed from the file is revoked at the next start or on SIGHUP, with an audit event', async () => {
  using home = new CliHome();
  const [one, two] = [await newSecret(home, 'one.key'), await newSecret(home, 'two.key')];
  const declared = [
    { name: 'one', hash: one.hash, more: ['whitelist: [1]'] },
    { name: 'two', hash: two.hash, more: ['whitelist: [1]'] },
  ] as const;
  configure(home, ...declared);
  const accepted = async (daemon: Serving) =>
    Promise.all([one, two].map(async ({ secret }) => (await daemon.verify(secret)).status));
  {
    await using daemon = await DaemonProcess.start(home);
    expect(await accepted(daemon)).toEqual([200, 200]);
    configure(home, declared[1]);
    daemon.process.kill('SIGHUP');
    await expect.poll(() => accepted(daemon)).toEqual([401, 200]);
    await daemon.stop();
  }
  configure(home, declared[0]);
  await using daemon = await DaemonHere.start(home);
  expect(await accepted(daemon)).toEqual([200, 401]);
  const { events } = await home.json<{ events: Array<{ action: string; by: string; detail: object }> }>(
    'audit',
    'list',
  );
  expect(events.filter(({ action }) => action === 'key.revoke')).toMatchObject([
    { by: 'daemon', detail: { reason: 'no longer declared' } },
    { by: 'daemon', detail: { reason: 'no longer declared' } },
  ]);
});

test('declaring another key’s name or secret prevents a start, with 78 and the line, and leaves a running daemon unchanged', async () => {
  using home = new CliHome();
  const { secret = '' } = await home.json<{ secret?: string }>('key', 'create', 'game');
  await home.here(['whitelist', 'add', '1']);
  const { stdout: hash } = await home.here(['key', 'hash', '-'], { input: secret });
  const fresh = await newSecret(home, 'fresh.key');
  configure(home, { name: 'game', hash: fresh.hash }, { name: 'other', hash: hash.trim() });
  const { code, stderr } = await home.here(['serve', '--port', '0']);
  expect(code).toBe(78);
  expect(stderr).toMatch(/rankd\.yaml:4:11 keys\[0\]\.name: is the name of the key "game" \(key_\w+\)/);
  expect(stderr).toMatch(/rankd\.yaml:7:11 keys\[1\]\.hash: is the hash of the secret of the key "game"/);

  configure(home);
  await using daemon = await DaemonHere.start(home);
  configure(home, { name: 'game', hash: fresh.hash });
  daemon.reload();
  await expect.poll(() => daemon.log).toContain('the new configuration was refused');
  expect((await daemon.verify(secret)).status).toBe(200);
});

test('a test secret never changes ranks, even if it is declared as live', async () => {
  using home = new CliHome();
  const { hash } = await home.json<{ hash: string }>('key', 'hash', '--new', 'trial.key', '--test');
  configure(home, { name: 'trial', hash, more: ['mode: live', 'whitelist: [1]'] });
  await using daemon = await DaemonHere.start(home);
  const secret = readFileSync(home.path('trial.key'), 'utf8').trim();
  expect((await daemon.verify(secret)).status).toBe(401);
  const verified = await home.here(['key', 'verify', '-'], { input: secret });
  expect(verified).toMatchObject({ code: 5, stdout: expect.stringContaining('does not match the mode of the key') });
});
