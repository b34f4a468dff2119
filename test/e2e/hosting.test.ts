import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { postgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Runs rankd as hosting platforms do: configured only by variables, with a single reachable port. */

const rankd = fileURLToPath(new URL('../../bin/rankd.js', import.meta.url));
const running: ChildProcess[] = [];
afterEach(async () => {
  for (const child of running
    .splice(0)
    .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

interface Hosted {
  output(): string;
  stop(): Promise<number | null>;
}

function bare(args: string[], env: Record<string, string>, uid?: number): [file: string, ...args: string[]] {
  const asUser = uid === undefined ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return ['env', '-i', ...asUser, ...['env', ...variables], process.execPath, rankd, ...args];
}

/** Starts `rankd serve` with no variables but these. Resolves once its output contains `until`. */
async function host(
  env: Record<string, string>,
  { cwd = '/', until = 'rankd listens on', uid }: { cwd?: string; until?: string; uid?: number } = {},
) {
  const [file, ...args] = bare(['serve'], env, uid);
  const child = spawn(file, args, { cwd });
  running.push(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  await expect.poll(() => output, { timeout: 20_000 }).toContain(until);
  const hosted: Hosted = {
    output: () => output,
    async stop() {
      child.kill('SIGTERM');
      const [code] = await once(child, 'exit');
      return code;
    },
  };
  return hosted;
}

/** Returns a free port below the range from which Linux assigns ports to other tests. */
async function freePort(): Promise<number> {
  const port = 20_000 + randomInt(10_000);
  const server = createServer().listen(port);
  const isFree = await Promise.race([once(server, 'listening'), once(server, 'error')]).then(
    () => server.listening,
    () => false,
  );
  server.close();
  return isFree ? port : freePort();
}

test('with only PORT set, rankd listens on that port on all addresses, and reports an unused DATABASE_URL', async () => {
  using home = new CliHome();
  const PORT = String(await freePort());
  const DATABASE_URL = 'postgres://ann:geheim@127.0.0.1:1/other';
  const nowhere = 'http://127.0.0.1:1';
  const roblox = {
    RANKD_GROUP_ID: '1',
    RANKD_PLATFORM_API_KEY: 'none',
    RANKD_PLATFORM_BASE_URL: nowhere,
    RANKD_PLATFORM_LEGACY_BASE_URL: nowhere,
  };
  const daemon = await host({ PORT, DATABASE_URL, ...roblox, RANKD_DATA_DIR: home.dataDir }, { cwd: home.cwd });
  await expect
    .poll(daemon.output, { timeout: 20_000 })
    .toContain(`The database in ${home.dataDir} is new: it has no history, no suspensions and no keys`);
  expect(daemon.output()).toContain(`rankd listens on http://0.0.0.0:${PORT} (from PORT)\n`);
  expect(daemon.output()).toContain('DATABASE_URL is set but not used; to use it: RANKD_STORE_URL=$DATABASE_URL\n');
  expect(daemon.output()).not.toContain('geheim');
  expect((await fetch(`http://127.0.0.1:${PORT}/healthz`)).status).toBe(200);
  const { stdout } = await home.here(['config', 'show', '--origin'], { env: { PORT } });
  expect(stdout).toMatch(new RegExp(`server\\.port +${PORT} +environment PORT`));
  expect(await daemon.stop()).toBe(0);
});

test('a key and the workspace id from variables survive an empty disk; an id that differs from the database stops the start', async () => {
  using home = new CliHome();
  const secret = await home.createKey();
  const hash = createHash('sha256').update(secret).digest('hex');
  const RANKD_KEYS = `[{name: game, hash: ${hash}, whitelist: [1]}]`;
  const start = (disk: string, RANKD_WORKSPACE_ID: string) =>
    DaemonHere.start(home, { env: { RANKD_KEYS, RANKD_WORKSPACE_ID, RANKD_DATA_DIR: home.path(disk) } });
  for (const disk of ['one', 'two']) {
    await using daemon = await start(disk, 'ws_mine');
    expect(await daemon.verify(secret)).toMatchObject({ status: 200, json: 'ws_mine' });
  }
  await expect(start('two', 'ws_other')).rejects.toThrow(
    "RANKD_WORKSPACE_ID workspace.id: is ws_other, but the database's workspace is ws_mine",
  );
});

test.runIf(process.getuid?.() === 0)(
  'on PostgreSQL, a user without account, home or writable folder can serve and check health, and releases can overlap',
  async () => {
    const { url } = await postgresDatabase();
    const uid = 54_321;
    const variables = () => {
      const TMPDIR = tempDir();
      chmodSync(TMPDIR, 0o1777);
      return { RANKD_STORE_URL: url, RANKD_KEYS: '[]', RANKD_SERVER_PORT: '0', TMPDIR };
    };
    const [first, second] = [variables(), variables()];
    const health = (env: Record<string, string>) => {
      const [file, ...args] = bare(['health'], env, uid);
      return spawnSync(file, args, { cwd: '/', encoding: 'utf8' }).status;
    };
    expect(health(first)).toBe(69);
    const old = await host(first, { uid });
    const [name = ''] = readdirSync(first.TMPDIR).filter((one) => one.startsWith(`rankd-${uid}-`));
    expect(old.output()).toContain(
      `The data directory /.local/share/rankd can't be used, so the socket and the lock are in ${first.TMPDIR}/${name}.\n`,
    );
    expect(health(first)).toBe(0);
    const next = await host(second, { uid });
    expect(await old.stop()).toBe(0);
    expect([health(first), health(second)]).toEqual([69, 0]);
    expect(await next.stop()).toBe(0);
  },
);

test('on PostgreSQL, any machine can create page links and end sessions; if no daemon has a permanent page, it gets 69', async () => {
  const { url: RANKD_STORE_URL } = await postgresDatabase();
  using home = new CliHome();
  using elsewhere = new CliHome();
  const asked = () => elsewhere.here(['dashboard', '--json'], { env: { RANKD_STORE_URL } });
  expect(await asked()).toMatchObject({ code: 69, stderr: expect.stringContaining('No rankd daemon') });
  {
    await using _daemon = await DaemonHere.start(home, { env: { RANKD_STORE_URL } });
    expect(await asked()).toMatchObject({ code: 69, stderr: expect.stringContaining('serves its page all the time') });
  }
  await using daemon = await DaemonHere.start(home, { env: { RANKD_STORE_URL, RANKD_DASHBOARD_PATH: '/page' } });
  const { url } = (await asked()).json<{ url: string }>();
  expect(url).toContain(`http://127.0.0.1:${new URL(daemon.url).port}/page/login#`);
  const visitor = new PageVisitor(url);
  expect(await visitor.logIn()).toMatchObject({ status: 200 });
  expect(await visitor.logIn()).toMatchObject({ status: 403, json: { code: 'link_refused' } });
  const logout = await elsewhere.here(['dashboard', 'logout', '--json'], { env: { RANKD_STORE_URL } });
  expect([logout.code, logout.json()]).toEqual([0, { v: 1, sessions: 1 }]);
  expect(await visitor.get('/api/session')).toMatchObject({ status: 401 });
});
