import { readdirSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';

async function busyDaemon() {
  const home = new CliHome();
  const secret = await home.createKey();
  const daemon = await DaemonProcess.start(home);
  expect((await daemon.rank(secret, { newRankId: 20 })).status).toBe(200);
  return {
    home,
    secret,
    daemon,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      home[Symbol.dispose]();
    },
  };
}

test('changes that were acknowledged with 200 after the last checkpoint survive kill -9', async () => {
  await using system = await busyDaemon();
  truncateSync(join(system.home.dataDir, 'rankd.db-wal'));
  const answers = [
    await system.daemon.rank(system.secret, { newRankId: 10 }),
    await system.daemon.rank(system.secret, { newRankId: 20 }),
  ];
  await system.daemon.stop('SIGKILL');
  const answered = answers.filter(({ status }) => status === 200).length;
  const { changes } = await system.home.json<{ changes: unknown[] }>('history', 'list');
  expect(changes.length).toBeGreaterThanOrEqual(answered);
  expect(answers.map(({ status }) => status)).toEqual([503, 503]);
});

test('a command whose writes the daemon would not see changes nothing and reports that, and so do status and doctor', async () => {
  await using system = await busyDaemon();
  const { home } = system;
  rmSync(join(home.dataDir, 'rankd.db-shm'));
  const commands = [
    ['key', 'revoke', 'game', '-y'],
    ['key', 'rotate', 'game', '--overlap', '0s'],
    ['key', 'set', 'game', '--max-rank', '5'],
    ['key', 'create', 'other'],
    ['whitelist', 'add', '7'],
    ['whitelist', 'disable', '1'],
    ['workspace', 'suspend', '-y'],
    ['rank', 'set', '1001', '10', '-y'],
    ['history', 'undo', '--key', 'game', '--since', '1h', '-y'],
  ];
  const before = await home.json('audit', 'verify');
  for (const args of commands) {
    const { code, stderr } = await home.here(args);
    expect({ args, code }).toEqual({ args, code: 69 });
    expect(stderr).toContain("can't use its database, so nothing was changed");
    expect(stderr).toContain('start it again');
  }
  expect(await home.json('audit', 'verify')).toEqual(before);
  expect((await home.here(['status'])).stdout).toMatch(/^database +CAN'T BE USED: .*removed, replaced/m);
  expect(await home.json('status')).toMatchObject({ status: { storeProblem: expect.stringContaining('removed') } });
  const doctor = await home.here(['doctor']);
  expect(doctor.code).toBe(5);
  expect(doctor.stdout).toMatch(/^FAIL +daemon +.*removed, replaced/m);
});

test('a stopping daemon that has lost its files removes nothing that was written since', async () => {
  await using system = await busyDaemon();
  rmSync(join(system.home.dataDir, 'rankd.db-shm'));
  rmSync(join(system.home.dataDir, 'daemon.sock')); // commands can no longer reach the daemon
  expect((await system.daemon.verify(system.secret)).status).toBe(503);
  await system.home.run(['key', 'revoke', 'game', '-y']);
  await system.daemon.stop();
  await using daemon = await DaemonProcess.start(system.home);
  expect((await daemon.verify(system.secret)).status).toBe(401);
});

test.each([
  ['removed', (lock: string) => rmSync(lock)],
  ['moved away', (lock: string) => renameSync(lock, `${lock}.old`)],
])('a daemon whose lock file is %s stops working before a second one starts', async (_, harm) => {
  await using system = await busyDaemon();
  harm(join(system.home.dataDir, 'daemon.lock'));
  expect((await system.daemon.rank(system.secret, { newRankId: 10 })).status).toBe(503);
  await using second = await DaemonProcess.start(system.home);
  expect((await second.rank(system.secret, { newRankId: 10 })).status).toBe(200);
  expect((await system.daemon.rank(system.secret, { newRankId: 20 })).status).toBe(503);
  await system.daemon.stop();
  // The first daemon has left the second one's socket alone.
  expect(readdirSync(system.home.dataDir)).toContain('daemon.sock');
  expect((await second.verify(system.secret)).status).toBe(200);
});
