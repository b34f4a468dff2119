import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { CliHome } from '../support/run-cli.ts';

/** rankd where a platform runs it: variables are its only settings, and one port is the only one that is reached. */

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
  /** All output so far. */
  output(): string;
  stop(): Promise<number | null>;
}

/** Starts `rankd serve` with these variables alone, as `env -i` does. Resolves once its output contains `until`. */
async function host(env: Record<string, string>, { cwd, until = 'rankd listens on' }: { cwd: string; until?: string }) {
  const child = spawn('env', ['-i', ...variables(env), process.execPath, rankd, 'serve'], { cwd });
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

function variables(env: Record<string, string>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

test('with PORT and no other setting, rankd listens on that port at all addresses, and reports both and the database that it does not use', async () => {
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
  await expect.poll(daemon.output).toContain(`The database in ${home.dataDir} is new: no history, suspensions or keys`);
  expect(daemon.output()).toContain(`rankd listens on http://0.0.0.0:${PORT} (from PORT)\n`);
  expect(daemon.output()).toContain('DATABASE_URL is set but not used; to use it: RANKD_STORE_URL=$DATABASE_URL\n');
  expect(daemon.output()).not.toContain('geheim');
  expect((await fetch(`http://127.0.0.1:${PORT}/healthz`)).status).toBe(200);
  const { stdout } = await home.here(['config', 'show', '--origin'], { env: { PORT } });
  expect(stdout).toMatch(new RegExp(`server\\.port +${PORT} +environment PORT`));
  expect(await daemon.stop()).toBe(0);
});

test('a key and the workspace id in variables are the same on each empty disk; an id other than that of the database stops the start', async () => {
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
    'RANKD_WORKSPACE_ID workspace.id: is ws_other, but the database has the workspace ws_mine',
  );
});
