import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { acquireDaemonLock, isDaemonRunning } from '../../../../src/stores/sqlite/files/daemon-lock.ts';
import { runNode, startNode } from '../../../support/node-process.ts';
import { modeOf, tempDir } from '../../../support/temp-dir.ts';

async function startDaemon(dataDir: string): Promise<ChildProcess> {
  const child = startNode(`
    import { acquireDaemonLock } from './src/stores/sqlite/files/daemon-lock.ts';
    globalThis.lock = await acquireDaemonLock(${JSON.stringify(dataDir)});
    console.log('holding');
    setInterval(() => {}, 1000);`);
  if (child.stdout === null) throw new Error('no stdout');
  await once(child.stdout, 'data');
  return child;
}

test('a second daemon on a data directory is rejected, and the error names the directory', async () => {
  const dataDir = tempDir();
  await startDaemon(dataDir);
  await expect(acquireDaemonLock(dataDir)).rejects.toMatchObject({
    name: 'RankdError',
    code: 'conflict',
    message: expect.stringContaining(dataDir),
    hint: expect.stringContaining('stop'),
  });
  expect(await isDaemonRunning(dataDir)).toBe(true);
});

test('kill -9 releases the lock at once', async () => {
  const dataDir = tempDir();
  const daemon = await startDaemon(dataDir);
  daemon.kill('SIGKILL');
  await once(daemon, 'exit');
  expect(await isDaemonRunning(dataDir)).toBe(false);
  await using _lock = await acquireDaemonLock(dataDir);
  expect(await isDaemonRunning(dataDir)).toBe(true);
});

test('checking the lock in the process that holds it does not release it', async () => {
  const dataDir = tempDir();
  await using _lock = await acquireDaemonLock(dataDir);
  expect(await isDaemonRunning(dataDir)).toBe(true);
  await expect(acquireDaemonLock(dataDir)).rejects.toMatchObject({ code: 'conflict' });
  const seen = await runNode(`
    import { isDaemonRunning } from './src/stores/sqlite/files/daemon-lock.ts';
    console.log(await isDaemonRunning(${JSON.stringify(dataDir)}));`);
  expect(seen).toBe(true);
});

test('a released lock can be taken again, and each directory has a separate lock', async () => {
  const [dataDir, elsewhere] = [tempDir(), tempDir()];
  const lock = await acquireDaemonLock(dataDir);
  await using _other = await acquireDaemonLock(elsewhere);
  await lock[Symbol.asyncDispose]();
  expect(await isDaemonRunning(dataDir)).toBe(false);
  await using _again = await acquireDaemonLock(dataDir);
  expect(await isDaemonRunning(elsewhere)).toBe(true);
});

test('the lock is one private file, which only a daemon creates', async () => {
  const dataDir = join(tempDir(), 'new');
  expect(await isDaemonRunning(dataDir)).toBe(false);
  await using _lock = await acquireDaemonLock(dataDir);
  expect(readdirSync(dataDir)).toEqual(['daemon.lock']);
  expect(modeOf(join(dataDir, 'daemon.lock'))).toBe('600');
});

test('a different file with the name of the lock is reported as such, not as a running daemon', async () => {
  const dataDir = tempDir();
  writeFileSync(join(dataDir, 'daemon.lock'), 'x'.repeat(5_000));
  const other = { code: 'config_invalid', hint: expect.stringContaining('move it out') };
  await expect(isDaemonRunning(dataDir)).rejects.toMatchObject(other);
  await expect(acquireDaemonLock(dataDir)).rejects.toMatchObject(other);
});
