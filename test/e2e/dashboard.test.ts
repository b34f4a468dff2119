import { once } from 'node:events';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { controlPath } from '../../src/control/control.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { CliHome } from '../support/run-cli.ts';

let home: CliHome;
let daemon: DaemonHere;

beforeAll(async () => {
  home = new CliHome();
  daemon = await DaemonHere.start(home, { env: { RANKD_DASHBOARD_PORT: '0' } });
});

afterAll(async () => {
  await daemon.stop();
  home[Symbol.dispose]();
});

test('a link works once; the cookie is limited to the page, and scripts cannot read it', async () => {
  const visitor = await PageVisitor.withLink(home);
  const { port } = new URL(visitor.origin);
  const login = await visitor.logIn();
  expect(login.headers['set-cookie']).toEqual([
    expect.stringMatching(new RegExp(`^rankd_${port}=[\\w-]{43}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict$`)),
  ]);
  const { token, ...session } = login.json.session;
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(await visitor.read('/api/session')).toEqual({ v: 1, session });
  const second = new PageVisitor(`${visitor.origin}/login#${visitor.secret}`);
  expect(await second.logIn()).toMatchObject({ status: 403, json: { code: 'link_refused', try: 'rankd dashboard' } });
});

test('a link with --view shows everything and changes nothing, for --hours', async () => {
  const { stdout, stderr } = await home.here(['dashboard', '--view', '--hours', '2']);
  expect(stderr).toContain('Its session can change nothing.');
  const viewer = new PageVisitor(stdout.trim());
  const login = await viewer.logIn();
  expect(String(login.headers['set-cookie'])).toContain('Max-Age=7200;');
  const { viewOnly, loggedInAt, expiresAt } = login.json.session;
  expect({ viewOnly, ms: Date.parse(expiresAt) - Date.parse(loggedInAt) }).toEqual({ viewOnly: true, ms: 7_200_000 });
  await viewer.read('/api/status');
  for (const path of ['keys/pause', 'undo', 'rank/change', 'active'])
    expect(await viewer.post(`/api/${path}`), path).toMatchObject({ status: 403, json: { code: 'view_only' } });
});

test('the hint for a tunnel names the port of the link, and is omitted if dashboard.url is set', async () => {
  const { stdout, stderr } = await home.here(['dashboard']);
  const { port } = new URL(stdout.trim());
  expect(stderr).toContain(`From another machine: ssh -L ${port}:127.0.0.1:${port} THIS-MACHINE`);
  using other = new CliHome();
  const env = { RANKD_DASHBOARD_PORT: '0', RANKD_DASHBOARD_URL: 'https://page.example.com' };
  await using _daemon = await DaemonHere.start(other, { env });
  const behindProxy = await other.here(['dashboard']);
  expect(behindProxy.stdout).toMatch(/^https:\/\/page\.example\.com\/login#/);
  expect(behindProxy.stderr).not.toContain('ssh');
});

test('an error on the page suggests a command only if that command is the fix', async () => {
  const visitor = await PageVisitor.loggedIn(home);
  const refused = await visitor.get('/api/changes?limit=0');
  expect(refused).toMatchObject({ status: 400, json: { try: null } });
  const { json } = await visitor.get('/api/undo?change=chg_nothing');
  expect(json).toMatchObject({ code: 'not_found', try: 'rankd history list' });
});

test('the page gets the same documents as the command line for status and changes', async () => {
  await home.json('rank', 'set', '1001', '20');
  const visitor = await PageVisitor.loggedIn(home);
  type Printed = { status: { uptimeSeconds: number } };
  const { uptimeSeconds: _, ...asPrinted } = (await home.json<Printed>('status')).status;
  await expect.poll(async () => (await visitor.read('/api/status')).status).toMatchObject(asPrinted);
  const { changes, next } = await visitor.read('/api/changes');
  expect({ changes, next }).toEqual({ ...(await home.json('history', 'list')), v: undefined, next: null });
  const { change } = await visitor.read(`/api/change?id=${changes[0].id}`);
  expect(change).toEqual((await home.json<{ change: unknown }>('history', 'show', changes[0].id)).change);
});

test('the page also gets documents for keys, suspensions, webhooks, budget and chart', async () => {
  await home.createKey('views');
  await home.json('rank', 'suspend', '1002', '--for', '3d', '--reason', 'spam');
  const visitor = await PageVisitor.loggedIn(home);
  const shown = await home.json<{ key: { id: string } }>('key', 'show', 'views');
  await expect // the first response may lack the number of changes
    .poll(async () => (await visitor.read('/api/keys')).keys)
    .toContainEqual({ ...shown.key, changesInDay: 0 });
  const { suspensions } = await visitor.read('/api/suspensions');
  expect(suspensions).toEqual((await home.json<{ suspensions: unknown[] }>('suspension', 'list')).suspensions);
  expect(await visitor.read('/api/webhooks')).toEqual({ v: 1, webhooks: [] });
  expect(await visitor.read('/api/budget')).toEqual({ v: 1, budget: [], callsWaiting: 0, requestsInFlight: 0 });
  const { hours, days, isComplete } = await visitor.read('/api/chart');
  expect([hours.length, days.length, typeof isComplete]).toEqual([24, 30, 'boolean']);
});

test('lifting a suspension, pausing and resuming a key, and an undo are recorded for the operator who created the link', async () => {
  const secret = await home.createKey('acted');
  await daemon.rank(secret, { rankeeId: 1003, newRankId: 20 });
  await home.json('rank', 'suspend', '1004', '--for', '3d');
  const visitor = await PageVisitor.loggedIn(home);
  const lifted = await visitor.post('/api/suspensions/lift', { user: 1004, reason: 'appeal' });
  expect(lifted).toMatchObject({
    status: 200,
    json: { change: { state: 'applied' }, suspension: { state: 'lifted' } },
  });
  const again = await visitor.post('/api/suspensions/lift', { user: 1004 });
  expect(again).toMatchObject({ status: 404, json: { code: 'not_suspended' } });
  const paused = await visitor.post('/api/keys/pause', { key: 'acted' });
  expect(paused).toMatchObject({ status: 200, json: { key: { state: 'paused' } } });
  expect(await daemon.rank(secret, { rankeeId: 1003, newRankId: 50 })).toMatchObject({ status: 429 });
  const resumed = await visitor.post('/api/keys/resume', { key: 'acted' });
  expect(resumed).toMatchObject({ status: 200, json: { key: { state: 'active' } } });

  const { undo, ids } = await visitor.read('/api/undo?key=acted&since=1h');
  expect(undo).toMatchObject({ dryRun: true, changes: 1, members: [{ rankeeId: 1003, state: 'would_put_back' }] });
  const started = await visitor.post('/api/undo', { ids });
  expect(started).toMatchObject({ status: 200, json: { run: { members: 1 } } });
  const run = async () => (await visitor.read(`/api/run?id=${started.json.run.id}`)).run;
  await expect.poll(run).toMatchObject({ isRunning: false, done: 1, undo: { members: [{ state: 'put_back' }] } });

  const { changes } = await visitor.read('/api/changes?by=web');
  expect(changes.map(({ via, by }: { via: string; by: string }) => [via, by.split(':')[0]])).toEqual([
    ['undo', 'web'],
    ['page', 'web'],
  ]);
  const { events } = await home.json<{ events: Array<{ action: string; by: string }> }>('audit', 'list', '--by', 'web');
  expect(events.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['dashboard.login', 'key.pause', 'key.resume', 'history.undo', 'suspension.lift']),
  );
});

test('status shows the address of the page, its sessions, and a suspended workspace; logout ends all sessions', async () => {
  const visitor = await PageVisitor.loggedIn(home);
  const lastLink = await PageVisitor.withLink(home);
  await home.json('workspace', 'suspend', '-y');
  const stdout = (await home.here(['status'])).stdout;
  expect(stdout).toMatch(new RegExp(`^page +${visitor.origin}, \\d+ sessions?$`, 'm'));
  expect(stdout).toMatch(/^workspace +SUSPENDED, so no game can do anything; rankd workspace resume$/m);
  expect((await visitor.read('/api/status')).status.workspaceActive).toBe(false);
  await home.json('workspace', 'resume');
  using stream = await visitor.listen();
  // Refused because logout always ends every session.
  expect(await home.here(['dashboard', 'logout', '--view'])).toMatchObject({ code: 2 });
  const { sessions } = await home.json<{ sessions: number }>('dashboard', 'logout');
  expect(sessions).toBeGreaterThan(0);
  await expect.poll(() => stream.events.at(-1)).toBe('logout');
  expect(await visitor.get('/api/session')).toMatchObject({ status: 401 });
  expect(await lastLink.logIn()).toMatchObject({ status: 403 });
  expect((await home.here(['dashboard', 'logout'])).stdout).toBe('0 sessions ended; earlier links no longer work.\n');
});

test('the page is notified within two seconds of a change by a game or a command', async () => {
  const secret = await home.createKey('live');
  const visitor = await PageVisitor.loggedIn(home);
  using stream = await visitor.listen();
  await expect.poll(() => stream.events).toContain('hello');
  await new Promise((resolve) => setTimeout(resolve, 100)); // until the daemon has recorded the current state
  const notificationMs = async (act: () => Promise<unknown>) => {
    const before = stream.events.filter((name) => name === 'changes').length;
    await act();
    const done = performance.now();
    await expect.poll(() => stream.events.filter((name) => name === 'changes').length).toBeGreaterThan(before);
    return performance.now() - done;
  };
  expect(await notificationMs(() => daemon.rank(secret, { rankeeId: 1005, newRankId: 20 }))).toBeLessThan(2_000);
  expect(await notificationMs(() => home.json('rank', 'set', '1005', '10'))).toBeLessThan(2_000);
});

test('--open passes the link to the machine’s browser; without one, the command reports that and succeeds', async () => {
  writeFileSync(home.path('xdg-open'), `#!/bin/sh\nprintf %s "$1" > '${home.path('opened')}'\n`, { mode: 0o755 });
  const env = { PATH: `${home.cwd}:${process.env['PATH']}` };
  const { code, stdout } = await home.here(['dashboard', '--open'], { env });
  expect(code).toBe(0);
  await expect
    .poll(() => existsSync(home.path('opened')) && readFileSync(home.path('opened'), 'utf8'))
    .toBe(stdout.trim());
  const none = await home.here(['dashboard', '--open'], { env: { PATH: home.folder } });
  expect(none).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/login#[\w-]{22}\n$/),
  });
  expect(none.stderr).toContain('No browser could be opened (xdg-open); open the link yourself.');
});

test('a compromised daemon cannot make a command open a file, visit another site, or crash', async () => {
  using other = new CliHome();
  const opened = other.path('opened');
  writeFileSync(other.path('xdg-open'), `#!/bin/sh\nprintf %s "$1" > '${opened}'\n`, { mode: 0o755 });
  const env = { PATH: `${other.cwd}:${process.env['PATH']}` };
  await using daemon = await DaemonProcess.start(other);
  const socket = controlPath(other.dataDir) ?? '';
  renameSync(socket, `${socket}.real`);
  let url = '';
  await using thief = createServer((request, response) => {
    const link = { state: 'made', url, expiresAt: 0 };
    response.end(JSON.stringify(request.url === '/dashboard' ? link : { problems: 'none', version: 1 }));
  }).listen(socket);
  await once(thief, 'listening');
  for (url of [
    'file:///tmp/evil.desktop',
    'https://evil.example/login#x',
    'http://127.0.0.1:80@evil.example/',
    'http://localhost.evil.example/',
  ]) {
    expect(await other.here(['dashboard', '--open'], { env })).toMatchObject({
      ...{ code: 69, stdout: '' },
      stderr: expect.stringContaining('neither on this machine nor below dashboard.url'),
    });
  }
  expect(existsSync(opened)).toBe(false);
  expect(await other.here(['status'])).toMatchObject({
    code: 69,
    stderr: expect.stringContaining('a status that this command does not understand'),
  });
  daemon.process.kill('SIGKILL');
});

test('a restart ends all sessions, and open pages are notified', async () => {
  using other = new CliHome();
  await using first = await DaemonHere.start(other, { env: { RANKD_DASHBOARD_PORT: '0' } });
  const visitor = await PageVisitor.loggedIn(other);
  using stream = await visitor.listen();
  expect(await first.stop()).toBe(0);
  await expect.poll(() => [stream.events.at(-1), stream.isOver]).toEqual(['bye', true]);
  const port = new URL(visitor.origin).port;
  await using _second = await DaemonHere.start(other, {
    env: { RANKD_DASHBOARD_PORT: port, RANKD_DASHBOARD_ENABLED: 'true' },
  });
  expect(await visitor.get('/api/session')).toMatchObject({ status: 401, json: { code: 'no_session' } });
});
