import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { begin, finish, newChange, unknown } from '../contracts/store/samples.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';

const { trainee: userId } = sampleUsers;
const { base, trainee, officer } = sampleRoles;

test.concurrent('a change by a command first reconciles an earlier open change, even with a short deadline', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  const store = await engineOf({ dataDir: home.dataDir, clock: systemClock }).openStore();
  const held = (role: number) => [base, role].sort((a, b) => a - b);
  const left = newChange({
    group: `group ${roblox.groupId} on ${new URL(roblox.baseUrl).host}`,
    rankeeId: userId,
    rolesBefore: held(trainee),
    rolesAfter: held(officer),
    requestedAt: Date.now(),
  });
  await begin(store, left, { after: undefined });
  await finish({ store, clock: systemClock }, left.id, unknown);
  await store.close();
  const { code } = await home.here(['rank', 'set', String(userId), '20'], {
    env: { RANKD_SERVER_DEADLINE: '4s' },
    isInterrupted: true,
  });
  expect(code).toBe(0);
  expect(roblox.group.held(userId)).toEqual([officer]);
  const { changes } = await home.json<{ changes: Array<{ state: string }> }>('history', 'list');
  expect(changes.map(({ state }) => state)).toEqual(['applied', 'failed']);
});

test.concurrent('after Ctrl-C, a command completes and reports its change; after a second Ctrl-C, it exits at once with 130', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  const interrupted = async (interrupts: number) => {
    const before = roblox.journal.writes(userId).length;
    roblox.faults.add({ operation: 'assign', kind: 'slow', delayMs: interrupts === 1 ? 700 : 4_500 });
    const command = home.start(['rank', 'set', String(userId), before === 0 ? '20' : '50']);
    const [out, err] = [text(command.stdout), text(command.stderr)];
    await expect.poll(() => roblox.journal.writes(userId).length, { interval: 5 }).toBeGreaterThan(before);
    let output = '';
    command.stderr.on('data', (chunk) => {
      output += chunk;
    });
    for (let interrupt = 0; interrupt < interrupts; interrupt += 1) {
      command.kill('SIGINT');
      await expect.poll(() => output).toContain('Ctrl-C again');
    }
    const [code] = await once(command, 'exit');
    return { code, out: await out, err: await err };
  };
  expect(await interrupted(1)).toMatchObject({ code: 0, out: expect.stringContaining('is now Officer') });
  expect(roblox.group.held(userId)).toEqual([officer]);
  expect(await interrupted(2)).toMatchObject({ code: 130, out: '' });
  expect(await world.latestChange()).toMatchObject({ state: 'pending' });
});

test.concurrent('a command refuses to change ranks in a different group than the running daemon', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  await using _daemon = await DaemonHere.start(home, { args: ['--simulate'] });
  for (const command of [
    ['rank', 'set', String(userId), '20'],
    ['history', 'undo', '--key', 'game', '--since', '1h', '--yes'],
  ]) {
    const { code, stderr } = await home.here(command);
    expect([code, stderr]).toEqual([4, expect.stringContaining('changes ranks in the simulated group')]);
    expect(stderr).toContain(`group ${roblox.groupId} on 127.0.0.1`);
  }
  expect(roblox.journal.writes()).toEqual([]);
  expect((await home.here(['rank', 'test', String(userId), '20'])).code).toBe(0);
  const simulated = { env: { RANKD_PLATFORM_KIND: 'simulated' } };
  expect((await home.here(['rank', 'set', '1001', '20'], simulated)).code).toBe(0);
  const groupFile = fileURLToPath(new URL('../fixtures/group.yaml', import.meta.url));
  const another = { env: { ...simulated.env, RANKD_PLATFORM_GROUP_FILE: groupFile } };
  expect(await home.here(['rank', 'set', '11', '20'], another)).toMatchObject({
    code: 4,
    stderr: expect.stringContaining(`this command uses the simulated group of ${groupFile}`),
  });
});
