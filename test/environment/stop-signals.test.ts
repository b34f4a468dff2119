import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';

let world: OpenCloudHome;
beforeEach(async () => {
  world = await openCloudHome();
});
afterEach(() => world[Symbol.asyncDispose]());

const { trainee } = sampleUsers;

test('on SIGTERM while the platform is slow, the change is finished, answered and recorded, and the daemon exits with 0', async () => {
  const { roblox, secret } = world;
  const daemon = await world.startDaemon();
  roblox.faults.add({ operation: 'assign', kind: 'slow', delayMs: 700 });
  const asked = daemon.rank(secret);
  await expect.poll(() => roblox.journal.writes(trainee)).toHaveLength(1);
  const stopped = daemon.stop();
  expect(await asked).toMatchObject({ status: 200, json: { success: true } });
  expect(await stopped).toBe(0);
  expect(await world.latestChange()).toMatchObject({ state: 'applied' });
});

test('on SIGTERM after a reload that shortened the deadline, a change that began under the longer one is finished and answered', async () => {
  const { home, roblox, secret } = world;
  const daemon = await world.startDaemon();
  roblox.faults.add({ operation: 'assign', kind: 'slow', delayMs: 4_000 });
  const asked = daemon.rank(secret);
  await expect.poll(() => roblox.journal.writes(trainee)).toHaveLength(1);
  const file = home.path('rankd.yaml');
  writeFileSync(file, readFileSync(file, 'utf8').replace('port: 0', 'port: 0, deadline: 1s'));
  await home.json('reload');
  const stopped = daemon.stop();
  expect(await asked).toMatchObject({ status: 200, json: { success: true } });
  expect(await stopped).toBe(0);
});

test('SIGUSR1, which by default opens Node.js’s debugger, is ignored', async () => {
  const { secret } = world;
  const daemon = await world.startDaemon();
  daemon.process.kill('SIGUSR1');
  expect(await daemon.verify(secret)).toMatchObject({ status: 200 });
  expect(await daemon.stop()).toBe(0);
  expect(daemon.log).not.toContain('Debugger');
});

test('a second SIGTERM ends the daemon at once with 130, and the next start reconciles the interrupted change', async () => {
  const { roblox, secret } = world;
  const daemon = await world.startDaemon();
  roblox.faults.add({ operation: 'unassign', kind: 'hang', when: 'after' });
  const asked = daemon.rank(secret).catch(() => 'cut off');
  await expect.poll(() => roblox.journal.writes(trainee)).toHaveLength(2);
  const exited = once(daemon.process, 'exit');
  daemon.process.kill('SIGTERM');
  await expect.poll(() => daemon.log).toContain('stopping');
  daemon.process.kill('SIGTERM');
  expect(await exited).toEqual([130, null]);
  expect(await asked).toBe('cut off');
  expect(await world.latestChange()).toMatchObject({ state: 'pending' });

  await world.startDaemon();
  await expect.poll(() => world.latestChange(), { interval: 300 }).toMatchObject({ state: 'applied' });
  expect(roblox.group.held(trainee)).toEqual([sampleRoles.officer]);
});
