import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { binary, CliHome } from '../support/run-cli.ts';

const esc = '\u001b';

test.concurrent('without a daemon, status reports that, exits with 69 and creates nothing', async () => {
  using home = new CliHome();
  expect(await home.here(['status'])).toMatchObject({
    code: 69,
    stdout: 'FIELD  VALUE\nstate  not running\n',
    stderr: 'try: rankd serve\n',
  });
  const { code, stdout, stderr } = await home.here(['status', '--json']);
  expect({ code, stderr }).toEqual({ code: 69, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    v: 1,
    status: { state: 'not_running', openChanges: null, changesToday: null },
  });
  expect(existsSync(home.dataDir)).toBe(false);
});

test.concurrent('after a daemon has stopped, status still shows its changes', async () => {
  using home = new CliHome();
  await home.json('rank', 'set', '1001', '20', '-y');
  expect(await home.here(['status'])).toMatchObject({
    code: 69,
    stdout:
      'FIELD          VALUE\nstate          not running\nopen changes   0\nchanges today  1 applied\nlast backup    none by rankd\n',
  });
});

test.concurrent('status shows the whole state of a running daemon, as text and as one document', async () => {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home);
  await home.json('rank', 'set', '1001', '20', '-y');
  const { code, stdout, stderr } = await home.here(['status']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.replace(/^(uptime +)\S.*$/m, '$1UP')).toBe(
    `FIELD          VALUE
state          running
pid            ${daemon.process.pid}
version        0.1.0 (Node.js ${process.versions.node})
uptime         UP
listens on     ${daemon.url}
group          SIMULATED: nothing here touches Roblox
configuration  no file: environment variables and defaults
game keys      NONE is accepted, so no game can do anything
requests       0 in flight
queue          0 calls waiting for Roblox
budget left    not limited
open changes   0
changes today  1 applied
last backup    none by rankd
last problems  none
`,
  );
  const { status } = await home.json<{ status: Record<string, unknown> }>('status');
  expect(status).toEqual({
    state: 'running',
    pid: daemon.process.pid,
    version: '0.1.0',
    node: process.versions.node,
    startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    uptimeSeconds: expect.any(Number),
    url: daemon.url,
    publicUrl: null,
    metricsUrl: null,
    platform: 'simulated',
    simulated: true,
    groupId: null,
    groupName: null,
    changesRanksIn: 'the simulated group',
    configFile: null,
    needRestart: [],
    misfits: [],
    credential: { isAccepted: true, problem: null, actingUserId: 9001, expiresAt: null },
    unreached: [],
    platformTrust: { stop: null, believesAnswers: true, surprises: [] },
    acceptsKeys: false,
    workspaceActive: true,
    dashboard: null,
    discord: null,
    requestsInFlight: 0,
    callsWaiting: 0,
    budget: [],
    problems: [],
    storeProblem: null,
    olderModules: [],
    stuckSuspensions: [],
    webhooks: [],
    openChanges: 0,
    changesToday: { pending: 0, applied: 1, refused: 0, failed: 0, unknown: 0 },
    lastBackupAt: null,
    oldSecretsInUse: [],
    erasures: { waiting: 0, oldestAt: null },
  });
});

test.concurrent('on a real group, status shows the remaining budget, a rejected credential, and the latest warnings of the log', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  await using daemon = await world.serve();
  const { home, roblox, secret } = world;
  await expect.poll(() => roblox.journal.requests('introspect').length).toBeGreaterThan(0);
  const before = await home.json<{ status: Record<string, unknown> }>('status');
  expect(before.status).toMatchObject({
    platform: 'open-cloud',
    groupId: roblox.groupId,
    credential: { isAccepted: true, actingUserId: expect.any(Number) },
    budget: expect.arrayContaining([{ operation: 'assign', limit: 300, left: 300, waiting: 0 }]),
  });
  expect((await daemon.rank(secret)).status).toBe(200);
  roblox.credential.enabled = false;
  expect((await daemon.rank(secret)).status).toBe(502);
  const { code, stdout } = await home.here(['status']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Roblox key +NOT ACCEPTED: /m);
  expect(stdout).toMatch(/^AT +PROBLEM\n\S+Z +POST \/v1\/ranker 502 platform_credential: /m);
  expect(stdout).toMatch(/^group +Sample Fellowship \(700\)$/m);
  expect(stdout).toMatch(/^changes today +1 applied, 1 failed$/m);
  expect(stdout).toMatch(/^budget left +group \d+\/150, roles \d+\/300, /m);
});

test.concurrent('unexpected behavior of Roblox is listed by kind, with count and time', async ({ expect }) => {
  await using world = await openCloudHome();
  await using daemon = await world.serve();
  const { home, roblox, secret } = world;
  roblox.addedFields = { badge: 'gold' };
  roblox.faults.add({ operation: 'memberships', kind: 'status 520' });
  expect((await daemon.rank(secret)).status).toBe(200);
  type Seen = { platformTrust: { surprises: Array<{ what: string }> } };
  const { surprises } = (await home.json<{ status: Seen }>('status')).status.platformTrust;
  const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(surprises).toContainEqual({
    ...{ operation: 'memberships', what: 'status 520', count: 1 },
    ...{ firstAt: at, lastAt: at },
  });
  const field = 'assign: GroupMembership.badge: unknown field';
  const { stdout } = await home.here(['status']);
  expect(stdout).toMatch(/^FIRST SEEN +LAST SEEN +TIMES +UNEXPECTED RESPONSE$/m);
  expect(stdout).toMatch(new RegExp(`^\\S+Z +\\S+Z +1 +${field}$`, 'm'));
  expect(stdout).not.toContain('gold');
});

test.concurrent('a solved problem disappears, such as a refused reload after a successful one, or revoked keys of the simulation', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { home } = world;
  // the folder has no configuration, so the key belongs to the simulated group
  expect((await home.here(['key', 'create', 'demo'], { cwd: home.folder })).code).toBe(0);
  await world.serve();
  const problems = async () =>
    (await home.json<{ status: { problems: Array<{ message: string }> } }>('status')).status.problems.map(
      ({ message }) => message,
    );
  const yaml = readFileSync(home.path('rankd.yaml'), 'utf8');
  writeFileSync(home.path('rankd.yaml'), 'policy: { max_rank: 999 }\n');
  expect((await home.here(['reload'])).code).toBe(78);
  const [refused, demo] = [
    expect.stringMatching(/configuration was refused/),
    expect.stringMatching(/game keys created on the simulated group .*: demo\./),
  ];
  expect(await problems()).toEqual([refused, demo]);
  writeFileSync(home.path('rankd.yaml'), yaml);
  expect((await home.here(['reload'])).code).toBe(0);
  expect(await problems()).toEqual([demo]);
  await home.json('key', 'revoke', 'demo', '-y');
  expect(await problems()).toEqual([]);
});

test.concurrent('a platform problem disappears after the next successful call, and an unknown outcome once it is known', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { home, roblox, secret } = world;
  roblox.faults.add({ operation: 'any', kind: 'status 503', times: 1_000 });
  await using daemon = await world.serve({ RANKD_SERVER_DEADLINE: '3s' });
  const problems = async () => {
    const { status } = await home.json<{ status: { problems: Array<{ message: string }> } }>('status');
    return status.problems.map(({ message }) => message);
  };
  expect((await fetch(`${daemon.url}/readyz`)).status).toBe(503);
  expect((await daemon.rank(secret)).status).toBe(503);
  expect(await problems()).toEqual(
    expect.arrayContaining([expect.stringMatching(/^POST \/v1\/ranker 503 platform_unavailable/)]),
  );
  roblox.faults.clear();
  await expect.poll(async () => (await fetch(`${daemon.url}/readyz`)).status, { timeout: 10_000 }).toBe(200);
  expect((await daemon.rank(secret, { newRankId: 10 })).status).toBe(200);
  await expect.poll(problems, { timeout: 10_000 }).toEqual([]);
  roblox.faults.add({ operation: 'assign', kind: 'hang', when: 'after', times: 20 });
  expect((await daemon.rank(secret, { newRankId: 20 })).status).toBe(504);
  expect(await problems()).toContainEqual(expect.stringMatching(/^POST \/v1\/ranker 504 outcome_unknown/));
  roblox.faults.clear();
  await expect.poll(problems, { timeout: 15_000 }).toEqual([]);
});

test.concurrent('a repeated warning leaves room for other problems', async ({ expect }) => {
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), 'security: { roblox_id: warn }\n');
  const secret = await home.createKey();
  await using daemon = await DaemonHere.start(home);
  writeFileSync(home.path('rankd.yaml'), 'policy: { max_rank: 999 }\n');
  await home.here(['reload']);
  for (let index = 0; index < 6; index += 1) await daemon.verify(secret);
  expect((await home.json<{ status: unknown }>('status')).status).toMatchObject({
    problems: [
      { message: 'Roblox-Id does not match the place' },
      { message: expect.stringContaining('the new configuration was refused') },
    ],
  });
});

test.concurrent('the daemon’s socket is private, survives invalid input, is removed at the end, and replaces that of a killed daemon', async () => {
  using home = new CliHome();
  const socket = join(home.dataDir, 'daemon.sock');
  await using killed = await DaemonProcess.start(home);
  expect((statSync(socket).mode & 0o777).toString(8)).toBe('600');
  for (const [line, status] of [
    ['POST /status', 404],
    ['GET /reload', 404],
    ['POST /reload', 400],
  ] as const) {
    expect(await answerTo(socket, `${line} HTTP/1.1\r\nHost: x\r\nx-rankd-operator: %\r\n`)).toBe(status);
  }
  await killed.stop('SIGKILL');
  expect(existsSync(socket)).toBe(true);
  expect((await home.here(['status'])).code).toBe(69);
  await using daemon = await DaemonHere.start(home);
  expect((await home.here(['status'])).code).toBe(0);
  await daemon.stop();
  expect(existsSync(socket)).toBe(false);
});

async function answerTo(socket: string, head: string): Promise<number> {
  const client = connect(socket);
  client.write(`${head}Connection: close\r\n\r\n`);
  return Number((await text(client)).split(' ')[1]);
}

test.concurrent('a hanging daemon is distinguished from a missing one, and a different server at the configured address is ignored', async () => {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home);
  await using other = createServer((_request, response) => response.end('{"status":"ok"}')).listen(0, '127.0.0.1');
  await once(other, 'listening');
  const env = { RANKD_SERVER_PORT: String((other.address() as AddressInfo).port) };
  daemon.process.kill('SIGSTOP');
  try {
    for (const args of [['status'], ['health'], ['reload'], ['dashboard']]) {
      const message = args[0] === 'status' ? /not responding/ : /does not respond/;
      const since = performance.now();
      const { code, stdout, stderr } = await home.here(args, { env });
      expect({ args, code, message: stdout + stderr }).toEqual({
        args,
        code: 69,
        message: expect.stringMatching(message),
      });
      expect(performance.now() - since).toBeLessThan(8_000); // each command waits at most 3 s for the daemon
    }
    const { stderr } = await home.here(['key', 'create', 'late']);
    expect(stderr).toContain('; the daemon that uses it is not responding.');
  } finally {
    daemon.process.kill('SIGCONT');
  }
});

test.concurrent('--watch refreshes the status, without escape bytes if there is no terminal, and reports when the daemon is gone', async ({
  expect,
}) => {
  using home = new CliHome();
  await using daemon = await DaemonHere.start(home);
  const env = { PATH: process.env['PATH'], HOME: home.folder, RANKD_DATA_DIR: home.dataDir };
  const child = spawn(process.execPath, [binary, 'status', '--watch'], { cwd: home.cwd, env });
  let seen = '';
  child.stdout.on('data', (chunk) => {
    seen += chunk;
  });
  await expect.poll(() => seen.match(/state +running/g)?.length).toBeGreaterThan(1);
  await daemon.stop();
  await expect.poll(() => seen).toMatch(/state +not running/);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGINT');
  expect(await exited).toBe(130);
  expect(seen).not.toContain('\u001b');
  expect((await home.here(['status', '--watch', '--json'])).code).toBe(2);
});

test.concurrent('on a terminal, --watch shows the first lines that fit, on the alternate screen', async ({
  expect,
}) => {
  using home = new CliHome();
  await using _daemon = await DaemonHere.start(home);
  const io = new TerminalIo(home);
  io.screenSize = { columns: 40, rows: 6 };
  const exited = runCli(['status', '--watch'], io);
  await expect.poll(() => io.out).toContain('press Ctrl-C to stop');
  io.stop();
  expect(await exited).toBe(130);
  // enters and leaves the alternate screen
  expect(io.out).toMatch(new RegExp(`^${esc}\\[\\?1049h.*${esc}\\[\\?1049l$`, 's'));
  const [, frame = ''] = io.out.split(`${esc}[H`);
  const lines = frame.replaceAll(new RegExp(`${esc}\\[[\\d;?]*[A-Za-z]`, 'g'), '').split('\n');
  expect(lines).toHaveLength(6);
  expect(lines[0]).toMatch(/^state +running$/);
  expect(lines[4]).toMatch(/^… \d+ more lines$/);
  expect(lines[5]).toMatch(/^as of \d\d:\d\d:\d\d, press Ctrl-C to stop$/);
});

test.concurrent('status names a game whose module is older than the daemon, and ignores invented versions', async () => {
  using home = new CliHome();
  const created = await home.here(['key', 'create', 'games', '--any-place', '--json', '-y']);
  const { secret } = JSON.parse(created.stdout) as { secret: string };
  await using daemon = await DaemonHere.start(home);
  for (const [place, client] of [
    [77, '0.0.9'],
    [78, '0.1.0'],
    [79, '9.0.0'],
    [80, '<b>'],
  ])
    await fetch(`${daemon.url}/v2/roles?placeid=${place}`, {
      headers: { authorization: `Bearer ${secret}`, 'x-rankd-client': `${client}` },
    });
  const { status } = await home.json<{ status: { olderModules: unknown } }>('status');
  expect(status.olderModules).toEqual([{ placeId: 77, version: '0.0.9' }]);
  expect((await home.here(['status'])).stdout).toMatch(/place 77 +0\.0\.9: write it again with rankd game write/);
});
