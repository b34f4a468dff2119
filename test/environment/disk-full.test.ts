import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectError } from '../support/answers.ts';
import type { DaemonProcess } from '../support/daemon-process.ts';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { send } from '../support/open-test-app.ts';
import { binary } from '../support/run-cli.ts';

let world: OpenCloudHome;
let daemon: DaemonProcess;
beforeEach(async () => {
  world = await openCloudHome();
  daemon = await world.startDaemon();
});
afterEach(() => world[Symbol.asyncDispose]());

const { trainee } = sampleUsers;
const storeUnavailable = { status: 503, error: 'Store unavailable', code: 'store_unavailable' };
const outcomeUnknown = { status: 504, error: 'Outcome unknown', code: 'outcome_unknown' };
const rank = (headers = {}) => daemon.rank(world.secret, {}, { headers });
const ready = () => send(`${daemon.url}/readyz`, {});
const writesOf = (userId: number) => world.roblox.journal.writes(userId);

test('on a full disk, rankd sends nothing to the platform and is not ready, but verifies keys; it serves again once there is space', async () => {
  const { roblox } = world;
  expect(await ready()).toMatchObject({ status: 200 });
  fillDisk(daemon);
  for (const headers of [{}, { 'idempotency-key': 'once' }]) {
    expectError(await rank(headers), storeUnavailable);
  }
  expect(writesOf(trainee)).toEqual([]);
  expect(roblox.group.held(trainee)).toEqual([sampleRoles.trainee]);
  expect(await daemon.verify(world.secret)).toMatchObject({ status: 200 });
  expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  expectError(await ready(), storeUnavailable);
  expectError(await ready(), storeUnavailable);

  freeDisk(daemon);
  expect(await ready()).toMatchObject({ status: 200 });
  const answer = await rank({ 'idempotency-key': 'once' });
  expect(answer).toMatchObject({ status: 200, json: { success: true } });
  expect(roblox.group.held(trainee)).toEqual([sampleRoles.officer]);
  expect(roblox.violations()).toEqual([]);
});

test('if the disk fills up between a write and its outcome, a game gets 504, and the change is reconciled once there is space', async () => {
  const { roblox } = world;
  roblox.faults.add({ operation: 'unassign', kind: 'slow', when: 'after', delayMs: 200 });
  const asked = rank();
  await expect.poll(() => writesOf(trainee)).toHaveLength(2);
  fillDisk(daemon);
  expectError(await asked, outcomeUnknown);
  expect(await world.latestChange()).toMatchObject({ state: 'pending' });

  freeDisk(daemon);
  await expect.poll(() => world.latestChange()).toMatchObject({ state: 'applied' });
  expect(roblox.group.held(trainee)).toEqual([sampleRoles.officer]);
  expect(writesOf(trainee)).toHaveLength(2);
});

test('a daemon stops cleanly on a full disk, although its counts cannot be saved', async () => {
  await daemon.verify('rk_live_wrong');
  fillDisk(daemon);
  expect(await daemon.stop()).toBe(0);
  expect(daemon.log).toContain('stopped');
});

test('doctor detects a disk that rejects writes', async () => {
  const doctor = await world.home.shell(
    `prlimit --fsize=0: ${process.execPath} ${binary} --config ${world.home.path('rankd.yaml')} doctor --offline`,
  );
  expect(doctor.stdout).toMatch(/^FAIL +disk +The disk of .* did not write .*\.$/m);
  expect(doctor.stdout).toMatch(/^ok +database +sound/m);
});

/**
 * Makes every write by a running daemon fail as if the disk were full, by limiting the file size (RLIMIT_FSIZE,
 * prlimit(1)). This needs no privileges and can be undone. The limit does not apply to pipes, so the daemon can still
 * log.
 */
function fillDisk({ process }: DaemonProcess): void {
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=0:']);
}

function freeDisk({ process }: DaemonProcess): void {
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:']);
}
