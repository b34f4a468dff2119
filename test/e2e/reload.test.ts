import { createHmac } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

interface Event {
  action: string;
  detail: { applied?: string[]; needRestart?: string[]; message?: string };
}

interface Reloaded {
  applied: unknown[];
  warnings: string[];
}

const groupFile = fileURLToPath(new URL('../fixtures/group.yaml', import.meta.url));
const promotion = { rankerId: 1003, rankeeId: 1001 };

test('rankd reload applies the file from the next request on, and names settings that need a restart', async () => {
  const { home, daemon, secret } = await serveWith('policy: { locked_roles: [20] }\n');
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 403 });
  const file = home.path('rankd.yaml');
  const server = 'server: { host: 127.0.0.9, public_url: "https://a.example" }';
  const yaml = `policy: { locked_roles: [] }\nlimits: { rank: 1, rank_burst: 1 }\n${server}\n`;
  writeFileSync(file, yaml);
  expect(await home.run(['reload'])).toMatchObject({
    code: 0,
    stdout: `ok: loaded from ${file}

SETTING              BEFORE     NOW                TAKES EFFECT
server.public_url    -          https://a.example  at once
policy.locked_roles  [20]       []                 at once
limits.rank          600        1                  at once
limits.rank_burst    300        1                  at once
server.host          127.0.0.1  127.0.0.9          after a restart
`,
    stderr: 'Restart the daemon to apply the other changes.\n',
  });
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 200 });
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 429 });
  expect(readFileSync(file, 'utf8')).toBe(yaml); // a reload does not change the file
  expect((await home.here(['status'])).stdout).toMatch(/^needs a restart +for server\.host$/m);
  expect(await home.json('reload')).toEqual({
    v: 1,
    file,
    applied: [],
    needRestart: [{ name: 'server.host', before: '127.0.0.1', now: '127.0.0.9' }],
    warnings: [],
  });
});

test('rankd reload reports every mistake in the file with its location, and the daemon continues with its configuration', async () => {
  const { home, daemon, secret } = await serveWith('policy: { locked_roles: [20] }\n');
  writeFileSync(home.path('rankd.yaml'), 'policy: { locked_roles: [], max_rank: 999 }\nlimit: { rank: 1 }\n');
  const checked = await home.here(['config', 'check']);
  const refused = await home.here(['reload']);
  expect(refused).toMatchObject({ code: 78, stdout: '' });
  expect(refused.stderr).toBe(
    checked.stderr.replace(
      /try: .+/,
      'The daemon continues with its old configuration.\ntry: correct the listed problems, then try again',
    ),
  );
  expect(refused.stderr).toContain('rankd.yaml:1:39 policy.max_rank');
  expect((await home.here(['reload', '--json'])).json()).toMatchObject({ code: 'config_invalid' });
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 403 });
  const { events } = await home.json<{ events: Event[] }>('audit', 'list', '--by', 'cli', '--action', 'config');
  expect(events).toHaveLength(2);
  expect(events).toMatchObject([{ action: 'config.refuse' }, { action: 'config.refuse' }]);
});

test('rankd reload with a ladder that the group does not have changes nothing', async () => {
  const { home, daemon, secret } = await serveWith('');
  writeFileSync(home.path('rankd.yaml'), 'group: { ladder: [10, 99] }\npolicy: { locked_roles: [20] }\n');
  expect(await home.here(['reload'])).toMatchObject({
    code: 78,
    stderr: expect.stringMatching(/^error: .*99.*\n.*\ntry: /),
  });
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 200 });
});

test('reload refuses a policy with roles that the group does not have, which would protect nothing', async () => {
  const { home, daemon, secret } = await serveWith('');
  writeFileSync(home.path('rankd.yaml'), 'policy: { locked_roles: [20, 99], protected_roles: [70020, 98] }\n');
  const { code, stderr } = await home.here(['reload']);
  expect([code, stderr]).toEqual([
    78,
    expect.stringMatching(/policy\.locked_roles .*99.*policy\.protected_roles .*98/),
  ]);
  expect(daemon.log).toContain('the new configuration was refused');
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 200 });
});

test('a configuration that the daemon refused does not change its simulated group, even if commands use it', async () => {
  const { home, daemon, secret } = await serveWith('');
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 200 });
  writeFileSync(home.path('rankd.yaml'), `platform: { group_file: "${groupFile}" }\ngroup: { ladder: [10, 99] }\n`);
  expect(await home.here(['reload'])).toMatchObject({ code: 78 });
  writeFileSync(home.path('rankd.yaml'), `platform: { group_file: "${groupFile}" }\n`);
  expect(await home.json('rank', 'show', '11')).toMatchObject({
    member: { roles: [{ name: 'Ranger' }, { name: 'Sergeant' }] },
  });
  expect(await daemon.rank(secret, { ...promotion, newRankId: 10 })).toMatchObject({
    status: 200,
    json: { message: expect.stringContaining('was Officer (rank 20)') },
  });
});

test('changes in one group are neither replayed nor undone in a different group', async () => {
  const { home, daemon, secret } = await serveWith('');
  const rank = () => daemon.rank(secret, promotion, { headers: { 'idempotency-key': 'one' } });
  const replayed = async () => (await rank()).headers['idempotent-replayed'];
  expect(await rank()).toMatchObject({ status: 200 });

  const groupYaml = readFileSync(groupFile, 'utf8');
  writeFileSync(home.path('group.yaml'), groupYaml.replace('id: 12 ', 'id: 1001 '));
  writeFileSync(home.path('rankd.yaml'), 'platform: { group_file: group.yaml }\n');
  expect(await home.here(['reload'])).toMatchObject({ code: 0 });
  expect(await replayed()).toBeUndefined();
  expect(await home.json('rank', 'show', '1001')).toMatchObject({
    member: { roles: [{ name: 'Ranger' }, { name: 'Sergeant' }] },
  });
  expect(await replayed()).toBe('true');
  const undo = () => home.json('history', 'undo', '--key', 'game', '--since', '1h', '-y');
  expect(await undo()).toMatchObject({ undo: { changes: 1, members: [{ state: 'put_back' }] } });

  writeFileSync(home.path('rankd.yaml'), '');
  expect(await home.here(['reload'])).toMatchObject({ code: 0 });
  expect(await replayed()).toBe('true');
  expect(await undo()).toMatchObject({ undo: { changes: 1, members: [{ state: 'put_back' }] } });
  const { changes } = await home.json<{ changes: Array<{ id: string }> }>('history', 'list');
  const groups = changes.map(({ id }) => home.json<{ change: { group: string } }>('history', 'show', id));
  expect((await Promise.all(groups)).map(({ change }) => change.group)).toEqual([
    'the simulated group',
    expect.stringMatching(/^the simulated group of .*group\.yaml$/),
    expect.stringMatching(/^the simulated group of .*group\.yaml$/),
    'the simulated group',
  ]);
});

test('after a refused configuration, the previous platform stays in use, with its remaining budget', async () => {
  await using world = await openCloudHome();
  const { home, secret } = world;
  const daemon = await world.serve();
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 200 });
  const before = await assignsLeft(home);
  const file = home.path('rankd.yaml');
  const yaml = readFileSync(file, 'utf8');
  writeFileSync(
    file,
    yaml
      .replace(/legacy_base_url: .+"/, 'legacy_base_url: "http://127.0.0.1:1"')
      .replace('{ id:', '{ ladder: [10, 99], id:'),
  );
  expect(await home.here(['reload'])).toMatchObject({ code: 78 });
  writeFileSync(file, yaml);
  expect(await home.json('reload')).toMatchObject({ applied: [] });
  expect(await assignsLeft(home)).toBe(before);
});

test('a new secret for the erasure webhook in the same file is applied and reported, but not shown', async () => {
  const { home, daemon } = await serveWith('');
  const reload = async (secret: string) => {
    writeFileSync(home.path('erasure.secret'), secret, { mode: 0o600 });
    writeFileSync(home.path('rankd.yaml'), 'erasure: { secret_file: erasure.secret }\n');
    return home.here(['reload']);
  };
  const statusOf = async (secret: string) => {
    const body = JSON.stringify({ NotificationId: 'n', EventType: 'SampleNotification' });
    const time = Math.floor(Date.now() / 1_000);
    const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('base64');
    const headers = { 'roblox-signature': `t=${time},v1=${signature}` };
    return (await fetch(`${daemon.url}/roblox/webhook`, { method: 'POST', headers, body })).status;
  };
  expect(await statusOf('first'.repeat(4))).toBe(404);
  expect((await reload('first'.repeat(4))).stdout).toMatch(/^erasure\.secret_file +- +erasure\.secret +at once$/m);
  expect([await statusOf('first'.repeat(4)), await statusOf('second'.repeat(4))]).toEqual([200, 401]);
  const second = await reload('second'.repeat(4));
  expect(second.stdout).toMatch(/^erasure\.secret_file /m);
  expect(second.stdout).not.toContain('second'.repeat(4));
  expect([await statusOf('first'.repeat(4)), await statusOf('second'.repeat(4))]).toEqual([401, 200]);
});

test('rankd reload without a daemon reports that and how to start one', async () => {
  using home = new CliHome();
  expect(await home.here(['reload'])).toMatchObject({
    code: 69,
    stdout: '',
    stderr: `error: No rankd daemon is running on the data directory ${home.dataDir}.
try: start it with \`rankd serve\`, or name a different directory with --data-dir
`,
  });
});

test('SIGHUP reloads as well, and the audit records the outcome', async () => {
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), 'policy: { locked_roles: [20] }\n');
  await using daemon = await DaemonProcess.start(home);
  expect(await hangUp({ home, daemon }, 'policy: { locked_roles: [] }\nserver: { port: 1 }\n')).toEqual({
    action: 'config.reload',
    detail: { applied: ['policy.locked_roles'], needRestart: [] }, // --port takes precedence over the file
  });
  const { action, detail } = await hangUp({ home, daemon }, 'policy: { max_rank: 999 }\n');
  expect(action).toBe('config.refuse');
  expect(detail.message).toContain('rankd.yaml:1:21 policy.max_rank');
});

test('a reload switches from the simulated to a real group, or to a different key; an unusable key is reported at once', async () => {
  const roblox = await startFakeOpenCloud();
  onTestFinished(() => roblox.close());
  const env = { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl };
  const { home, daemon, secret } = await serveWith('', env);
  writeFileSync(home.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
  const flags = ['--group', String(roblox.groupId), '--credential-file', 'roblox.key', '--force'];
  const init = await home.here(['init', ...flags], { env });
  expect(init).toMatchObject({ code: 0, stderr: expect.stringMatching(/without a restart: rankd reload$/m) });
  await home.json('key', 'create', 'demo');
  const live = await home.json<Reloaded>('reload');
  expect(live.warnings).toEqual([expect.stringContaining('are not accepted here: game, demo. ')]);
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 401 });
  await home.json('key', 'adopt', 'game');
  expect(live.applied).toContainEqual({ name: 'platform.api_key', before: null, now: '[redacted]' });
  expect(await daemon.rank(secret, promotion)).toMatchObject({ status: 200 });
  expect(roblox.journal.writes(promotion.rankeeId).length).toBeGreaterThan(0);

  roblox.credential.scopes = [{ name: 'group', operations: ['read'], groupIds: ['*'] }];
  await home.json('key', 'revoke', 'demo', '-y');
  const { warnings } = await home.json<Reloaded>('reload');
  expect(warnings).toEqual([expect.stringContaining('does not list group:write')]);

  writeFileSync(home.path('roblox.key'), 'another-key');
  const other = await home.here(['reload']);
  expect(other).toMatchObject({ code: 0, stdout: expect.stringContaining('platform.api_key') });
  expect(other.stderr).toMatch(/^warning: Roblox does not accept the Roblox key /);
  expect(other.stdout + other.stderr).not.toContain('another-key');
  const { status } = await home.json<{ status: { credential: { isAccepted: boolean } } }>('status');
  expect(status.credential.isAccepted).toBe(false);
  expect((await fetch(`${daemon.url}/readyz`)).status).toBe(502);
  const refused = await daemon.rank(secret, { ...promotion, newRankId: 10 });
  expect(refused).toMatchObject({ status: 502, json: { code: 'platform_credential' } });
});

test('rankd reload lists declared keys by name, not by their hashes', async () => {
  const declared = (keys: Record<string, string>) =>
    `keys:${
      Object.entries(keys)
        .map(([name, digit]) => `\n  - { name: ${name}, hash: "${digit.repeat(64)}" }`)
        .join('') || ' []'
    }\n`;
  const { home } = await serveWith(declared({ 'my-game': 'a', quiz: 'b' }));
  const reloaded = async (keys: Record<string, string>) => {
    writeFileSync(home.path('rankd.yaml'), declared(keys));
    return (await home.here(['reload'])).stdout.split('\n').find((line) => line.startsWith('keys'));
  };
  expect(await reloaded({ 'my-game': 'c', quiz: 'b', hobby: 'd' })).toBe(
    'keys     2       3 (added hobby; changed my-game)  at once',
  );
  expect(await reloaded({ quiz: 'b', 'my-game': 'c', hobby: 'd' })).toMatch(/ 3 \(in a different order\) /);
  const many = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`k${n}`, (n + 1).toString(16)]));
  expect(await reloaded(many)).toMatch(/ 12 \(added k0, .*, k9, 2 more; removed quiz, my-game, hobby\) /);
  writeFileSync(home.path('rankd.yaml'), '');
  expect((await home.here(['reload'])).stdout).toMatch(/^keys +12 +0 \(removed /m);
});

test('init and reload report if the daemon reads a configuration file in a different folder', async () => {
  const { home, daemon } = await serveWith('policy: { max_rank: 100 }\n');
  const [its, other] = [home.path('rankd.yaml'), home.path('other')];
  mkdirSync(other);
  const mine = join(other, 'rankd.yaml');
  const message = `the daemon reads ${its}, not ${mine}. If it should read that file, stop it and run: rankd serve --config ${mine}\n`;
  writeFileSync(join(other, 'cloud.key'), 'a-key', { mode: 0o600 });
  const flags = ['--group', '4199740', '--credential-file', 'cloud.key', '--no-check'];
  const init = await home.here(['init', ...flags], { cwd: other });
  expect(init).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`A daemon is already running here, but ${message}`),
  });
  expect(await home.here(['reload'], { cwd: other })).toMatchObject({
    code: 0,
    stdout: `nothing has changed in ${its}\n`,
    stderr: `warning: ${message}`,
  });
  rmSync(its);
  expect((await home.here(['reload'], { cwd: other })).stderr).toContain(
    `was started without a configuration file, so it does not read ${mine}. `,
  );
  expect((await home.json<{ status: object }>('status')).status).toMatchObject({ configFile: null });
  const there = home.path('empty');
  mkdirSync(there);
  expect((await home.here(['reload'], { cwd: there })).stdout).toBe(
    'ok: nothing has changed: there is no configuration file, and a changed environment variable needs a restart\n',
  );
  writeFileSync(its, '');
  symlinkSync(its, home.path('link.yaml'));
  expect((await home.here(['reload', '--config', 'link.yaml'])).stdout).toMatch(/^ok: /);
  await daemon.stop();
});

async function assignsLeft(home: CliHome): Promise<number | undefined> {
  interface Status {
    status: { budget: Array<{ operation: string; left: number }> };
  }
  const { budget } = (await home.json<Status>('status')).status;
  return budget.find(({ operation }) => operation === 'assign')?.left;
}

async function serveWith(
  yaml: string,
  env: Record<string, string> = {},
): Promise<{ home: CliHome; daemon: DaemonHere; secret: string }> {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  writeFileSync(home.path('rankd.yaml'), yaml);
  const secret = await home.createKey();
  const daemon = await DaemonHere.start(home, { env });
  onTestFinished(() => daemon[Symbol.asyncDispose]());
  return { home, daemon, secret };
}

async function hangUp({ home, daemon }: { home: CliHome; daemon: DaemonProcess }, yaml: string): Promise<Event> {
  const isReload = ({ action }: Event) => action.startsWith('config.');
  const reloadEvents = async () => (await home.json<{ events: Event[] }>('audit', 'list')).events.filter(isReload);
  const before = (await reloadEvents()).length;
  writeFileSync(home.path('rankd.yaml'), yaml);
  daemon.process.kill('SIGHUP');
  await expect.poll(async () => (await reloadEvents()).length).toBe(before + 1);
  const [{ action, detail } = expect.fail('no reload event was recorded')] = await reloadEvents();
  return { action, detail };
}
