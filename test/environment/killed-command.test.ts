import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';

const { trainee: userId } = sampleUsers;
const { trainee, officer } = sampleRoles;

/** Resolves once the command's write is in flight. */
async function startWriting({ home, roblox }: OpenCloudHome) {
  const command = home.start(['rank', 'set', String(userId), '20']);
  await expect.poll(() => roblox.journal.writes(userId).length, { interval: 5 }).toBe(1);
  return command;
}

test.concurrent.for([
  ['was carried out', { when: 'after', state: 'applied', held: [officer] }],
  ['never arrived', { when: 'before', state: 'failed', held: [trainee] }],
] as const)(
  'a change of a killed command that %s is reconciled by the daemon within 10 s',
  async ([, expected], { expect }) => {
    await using world = await openCloudHome();
    const { roblox } = world;
    await world.startDaemon();
    roblox.faults.add({ operation: 'assign', kind: 'hang', when: expected.when });
    const command = await startWriting(world);
    command.kill('SIGKILL');
    await once(command, 'exit');
    const state = async () => (await world.latestChange()).state;
    await expect.poll(state, { interval: 250 }).toBe(expected.state);
    expect(roblox.group.held(userId)).toEqual(expected.held);
    expect(roblox.violations()).toEqual([]);
  },
);

test.concurrent('the daemon leaves the change of a suspended command alone, and the command continues it', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { roblox } = world;
  const daemon = await world.startDaemon();
  roblox.faults.add({ operation: 'assign', kind: 'slow', delayMs: 300 });
  const command = await startWriting(world);
  command.kill('SIGSTOP');
  const waiting = daemon.rank(world.secret, { rankeeId: userId, newRankId: 50 });
  await delay(3_000); // the daemon checks open changes twice a second
  expect(await world.latestChange()).toMatchObject({ state: 'pending' });
  expect(roblox.journal.writes(userId)).toHaveLength(1);
  command.kill('SIGCONT');
  const [code] = await once(command, 'exit');
  expect([code, (await waiting).status]).toEqual([0, 200]);
  expect(roblox.violations()).toEqual([]);
});
