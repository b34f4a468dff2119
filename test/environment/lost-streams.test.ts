import { type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { binary, CliHome } from '../support/run-cli.ts';

const home = new CliHome();
beforeAll(async () => {
  await home.json('key', 'create', 'game');
  const places = Array.from({ length: 3_000 }, (_, index) => index + 1).join('\n');
  expect((await home.here(['whitelist', 'add', '--file', '-'], { input: places })).code).toBe(0);
});
afterAll(() => home[Symbol.dispose]());

test('a daemon without readers of its log and output continues to serve, and stops cleanly', async () => {
  await using daemon = await DaemonProcess.start(home);
  daemon.process.stdout.destroy();
  daemon.process.stderr.destroy();
  for (let request = 0; request < 20; request += 1) {
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  }
  expect(await daemon.stop()).toBe(0);
});

test.each([
  ['have no reader from the start', '2>&1 | true'],
  ['are closed', '<&- >&- 2>&-'],
  ['lead to a full device', '>/dev/full 2>/dev/full'],
])('a daemon serves although its output and log %s', async (_name, where) => {
  const port = await freePort();
  const daemon = shell(`"$@" serve --port ${port} ${where}`, { detached: true });
  try {
    await expect.poll(() => statusOf(`http://127.0.0.1:${port}/readyz`)).toBe(200);
    for (let request = 0; request < 5; request += 1)
      expect(await statusOf(`http://127.0.0.1:${port}/healthz`)).toBe(200);
  } finally {
    process.kill(-Number(daemon.pid), 'SIGKILL');
    await once(daemon, 'exit');
  }
});

describe('a daemon whose log reader has stopped', () => {
  const maxBytes = 1_400_000; // 1 MB in the daemon, plus the buffers of the pipe and of this process

  test('continues to serve, buffers at most 1 MB of its log, and reports how many lines were dropped', async () => {
    await using daemon = await daemonWithPausedLog();
    await fillLog(daemon.url, 5_000);
    const read = text(daemon.stderr);
    const bufferedBytes = async () => {
      await statusOf(`${daemon.url}/healthz`);
      return daemon.bytes();
    };
    await expect.poll(bufferedBytes).toBeGreaterThan(1_000_000);
    daemon.process.kill('SIGTERM');
    const lines = (await read)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(daemon.bytes()).toBeLessThan(maxBytes);
    const dropped = lines.filter(({ msg }) => msg.startsWith('log lines were dropped'));
    const requests = lines.filter(({ path }) => path?.startsWith('/long'));
    expect(dropped).toMatchObject([{ level: 'warn', dropped: expect.any(Number) }]);
    expect(requests.length + dropped[0].dropped).toBeGreaterThanOrEqual(5_000);
  });

  test('stops cleanly within seconds after SIGTERM', async () => {
    await using daemon = await daemonWithPausedLog();
    await fillLog(daemon.url, 2_000);
    const exited = once(daemon.process, 'exit', { signal: AbortSignal.timeout(5_000) });
    daemon.process.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });
});

test('a command ends quietly when its reader closes the pipe', async () => {
  for (const command of ['whitelist list', 'whitelist list --json', 'history list']) {
    const piped = shell(`set -o pipefail; "$@" ${command} | head -1 >/dev/null`);
    const [said, [code]] = await Promise.all([text(piped.stderr), once(piped, 'exit')]);
    expect([command, code]).toEqual([command, 0]);
    expect(said).not.toMatch(/EPIPE|error/i);
  }
});

test('a result that cannot be written is an error of two lines; an unread error does not change the exit code', async () => {
  for (const command of ['key list', 'rank set 1001 20']) {
    const lost = shell(`"$@" ${command} >/dev/full`);
    const [said, [code]] = await Promise.all([text(lost.stderr), once(lost, 'exit')]);
    expect({ code, said }).toEqual({ code: 1, said: expect.stringMatching(/^error: .*written.+\ntry: .+\n$/m) });
  }
  const unread = shell('"$@" key show nobody 2>/dev/full');
  expect(await once(unread, 'exit')).toEqual([3, null]);
});

test('a secret that cannot be written is reported with the commands that rotate or revoke its key', async () => {
  for (const command of ['key create lost', 'key rotate lost --json']) {
    const lost = shell(`"$@" ${command} >/dev/full`);
    const [said, [code]] = await Promise.all([text(lost.stderr), once(lost, 'exit')]);
    expect({ code, said }).toEqual({ code: 1, said: expect.stringMatching(/key rotate lost .+ key revoke lost/) });
  }
});

const mayMount = spawnSync('unshare', ['-rm', 'true']).status === 0;

test.runIf(mayMount)(
  'on a full disk, no file with a secret is created, no key is created, and the old secret of a key stays valid',
  async () => {
    await home.json('key', 'create', 'kept');
    const secrets = async () => (await home.json<{ key: { secrets: unknown[] } }>('key', 'show', 'kept')).key.secrets;
    const before = await secrets();
    for (const command of ['key create unmade --out', 'key rotate kept --out', 'key hash --new']) {
      const onFullDisk = `mkdir -p full && mount -t tmpfs -o size=4k none full && head -c 4096 /dev/zero > full/rest
      "$@" ${command} full/new.key; code=$?; ls full >&2; exit $code`;
      const lost = shell(`unshare -rm bash -c '${onFullDisk}' bash "$@"`);
      const [said, [code]] = await Promise.all([text(lost.stderr), once(lost, 'exit')]);
      expect({ code, said }).toEqual({
        code: 69,
        said: expect.stringMatching(
          /^error: The disk of .+ is full, so rankd did not write .+\.\ntry: free up space .+\nrest\n$/,
        ),
      });
    }
    expect((await home.here(['key', 'show', 'unmade'])).code).toBe(3);
    expect(await secrets()).toEqual(before);
  },
);

/** Starts a daemon that logs all requests to a pipe. The test must resume `stderr` to read from it. */
async function daemonWithPausedLog() {
  const child = spawn(process.execPath, [binary, 'serve', '--port', '0', '--json', '--verbose'], {
    cwd: home.cwd,
    env: home.env,
  });
  const [greeting] = await once(child.stdout.setEncoding('utf8'), 'data');
  const stderr = child.stderr.pause();
  return {
    process: child,
    url: JSON.parse(greeting).url as string,
    stderr,
    bytes: () => (stderr as Socket).bytesRead,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Requests nonexistent paths with long names, to produce long log lines. */
async function fillLog(url: string, requests: number): Promise<void> {
  const path = `/long${'/fifteen-letters'.repeat(12)}`;
  const ahead = 10;
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let answers = 0;
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    answers += chunk.match(/HTTP\/1\.1 404/g)?.length ?? 0;
  });
  for (let sent = 0; sent < requests; sent += ahead) {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(ahead));
    while (answers < sent + ahead) await once(socket, 'data');
  }
  socket.destroy();
}

/** Runs a line of bash in these tests' home. `"$@"` in the line starts the built rankd. */
function shell(line: string, options: SpawnOptions = {}) {
  return spawn('bash', ['-c', line, 'bash', process.execPath, binary], {
    ...options,
    cwd: home.cwd,
    env: home.env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

/** Returns a port that was free a moment ago, because this daemon can't report its port. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

async function statusOf(url: string): Promise<number> {
  return fetch(url).then(
    ({ status }) => status,
    () => 0,
  );
}
