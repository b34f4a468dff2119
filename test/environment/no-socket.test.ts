import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';

/**
 * Creates a home whose data directory has a path too long for a socket. A data directory on CIFS or exFAT behaves the
 * same.
 */
function homeWithoutSocket() {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  const dataDir = join(home.folder, 'd'.repeat(120));
  const [temporary, runtime] = ['tmp', 'run'].map((name) => join(home.folder, name)) as [string, string];
  mkdirSync(temporary);
  mkdirSync(runtime);
  const env = { RANKD_DATA_DIR: dataDir, TMPDIR: temporary };
  const run = (...args: string[]) => home.here(args, { dataDir });
  return { home, dataDir, temporary, runtime, env, run };
}

test('if the data directory cannot contain a socket, it is in a private folder, where commands find it', async () => {
  const { home, dataDir, runtime, env, run } = homeWithoutSocket();
  await using daemon = await DaemonProcess.start(home, { env: { ...env, XDG_RUNTIME_DIR: runtime } });
  const socket = readFileSync(join(dataDir, 'daemon.address'), 'utf8').trim();
  expect(dirname(dirname(socket))).toBe(runtime);
  expect((statSync(dirname(socket)).mode & 0o777).toString(8)).toBe('700');
  for (const line of ['status', 'health --ready', 'reload', 'dashboard', 'key list'])
    expect({ line, code: (await run(...line.split(' '))).code }).toEqual({ line, code: 0 });
  expect((await run('doctor', '--offline')).stdout).not.toMatch(/socket/);
  expect(daemon.log).not.toMatch(/"level":"warn"[^\n]*socket/);

  await daemon.stop('SIGKILL');
  expect((await run('status')).code).toBe(69);
  await using second = await DaemonProcess.start(home, { env });
  expect(existsSync(dirname(socket))).toBe(false); // the second daemon has removed the killed one's folder
  expect((await run('health')).code).toBe(0);
  const again = readFileSync(join(dataDir, 'daemon.address'), 'utf8').trim();
  await second.stop();
  expect([join(dataDir, 'daemon.address'), dirname(again)].filter(existsSync)).toEqual([]);
});

test('a socket in a folder that belongs to, or is open to, other users is not used', async () => {
  const { home, dataDir, env, run } = homeWithoutSocket();
  await using _daemon = await DaemonProcess.start(home, { env });
  const folder = dirname(readFileSync(join(dataDir, 'daemon.address'), 'utf8').trim());
  execFileSync('chmod', ['755', folder]);
  expect((await run('status')).code).toBe(69);
  execFileSync('chmod', ['700', folder]);
  expect((await run('status')).code).toBe(0);
  if (process.getuid?.() !== 0) return;
  execFileSync('chown', ['12345', folder]);
  expect((await run('status')).code).toBe(69);
});

test('if no socket can be created, the daemon serves and logs one sentence about it, and doctor FAILs', async () => {
  const { home, dataDir, env, run } = homeWithoutSocket();
  const nowhere = { ...env, TMPDIR: join(home.folder, 'missing') };
  await using daemon = await DaemonProcess.start(home, { env: nowhere });
  const warningsNow = () => daemon.log.split('\n').filter((line) => line.includes('no socket can be created in'));
  await expect.poll(warningsNow).toHaveLength(1);
  const warnings = warningsNow();
  expect(JSON.parse(String(warnings[0]))).not.toHaveProperty('err');
  expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  const health = await run('health');
  expect(health).toMatchObject({ code: 69, stderr: expect.stringContaining('rankd doctor') });
  const doctor = await run('doctor', '--offline');
  expect(doctor.code).toBe(5);
  expect(doctor.stdout).toMatch(
    /^FAIL +socket +the daemon has no socket in .+, so status, health, reload and the page do not work$/m,
  );
  await daemon.stop();
  const before = await home.run(['doctor', '--offline'], { dataDir, env: nowhere });
  expect(before.stdout).toMatch(
    /^FAIL +socket +no socket can be created in .+d \(\w+\) or .+missing \(ENOENT\), so status/m,
  );
});

test('health trusts only its own daemon', async () => {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  const other = new CliHome();
  onTestFinished(() => other[Symbol.dispose]());
  await using _daemon = await DaemonProcess.start(home);
  await using stranger = await DaemonProcess.start(other);
  expect((await home.here(['health'])).code).toBe(0);

  // a proxy that forwards commands' requests, and replaces the daemon's address in the responses
  const socket = join(home.dataDir, 'daemon.sock');
  renameSync(socket, `${socket}.real`);
  let url = '';
  const proxy = createServer((request, response) => void forwardRequest(request, response)).listen(socket);
  onTestFinished(() => void proxy.close());
  async function forwardRequest({ url: path }: IncomingMessage, response: ServerResponse) {
    const { request } = await import('node:http');
    request({ socketPath: `${socket}.real`, path }, async (answer) => {
      const body = Buffer.concat(await answer.toArray()).toString();
      response.end(body.replace(/"url":"[^"]+"/, `"url":"${url}"`));
    }).end();
  }
  const program = createServer((_, response) => void response.end('{"status":"ok"}')).listen(0);
  onTestFinished(() => void program.close());
  for (url of [stranger.url, `http://127.0.0.1:${(program.address() as AddressInfo).port}`]) {
    for (const args of [['health'], ['health', '--ready']]) {
      const result = await home.run(args);
      expect(result).toMatchObject({ code: 69, stdout: '' });
      expect(result.stderr).toContain(`Another program answers at ${url}/`);
    }
  }
});
