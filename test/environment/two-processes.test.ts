import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { test, vi } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

const { trainee: userId } = sampleUsers;
const { trainee, captain } = sampleRoles;

/**
 * How long Roblox takes to give Captain. This exceeds the daemon's intervals: it checks open changes twice a second,
 * and retries unknown ones every two seconds.
 */
const writeMs = 2_500;

async function slowHome(delayMs = writeMs) {
  const world = await openCloudHome();
  world.roblox.faults.add({ operation: 'assign', kind: 'slow', roleId: captain, delayMs });
  return world;
}

const writeBegan = ({ roblox }: OpenCloudHome) =>
  vi.waitUntil(() => roblox.journal.writes(userId).length === 1, { interval: 5, timeout: 20_000 });

async function setRank({ home }: OpenCloudHome, rank: number, env: Record<string, string>): Promise<number> {
  const [code] = await once(home.start(['rank', 'set', String(userId), String(rank)], { env }), 'exit');
  return code;
}

async function listChanges({ home }: OpenCloudHome): Promise<Array<[number, string]>> {
  const { changes } = await home.json<{ changes: Array<{ newRankId: number; state: string }> }>('history', 'list');
  return changes.map(({ newRankId, state }): [number, string] => [newRankId, state]).reverse();
}

const steps = [
  ['forward', 60_000],
  ['back', -60_000],
] as const;

test.concurrent.for(steps)(
  'a daemon does not take over the change of a running command, although the clock is set a minute %s',
  async ([, step], { expect }) => {
    await using world = await slowHome();
    const clock = new SteppedClock(world.home.path('clock'));
    await world.startDaemon(clock.env);
    const command = setRank(world, 50, clock.env);
    await writeBegan(world);
    clock.step(step);
    expect(await command).toBe(0);
    expect(await listChanges(world)).toEqual([[50, 'applied']]);
    expect(world.roblox.group.held(userId)).toEqual([captain]);
    expect(world.roblox.violations()).toEqual([]);
  },
);

test.concurrent.for(steps)(
  'a command waits for a change of the same member by a game, although the clock is set a minute %s',
  async ([, step], { expect }) => {
    await using world = await slowHome();
    const clock = new SteppedClock(world.home.path('clock'));
    const daemon = await world.startDaemon(clock.env);
    const game = daemon.rank(world.secret, { rankeeId: userId, newRankId: 50 });
    await writeBegan(world);
    clock.step(step);
    expect(await setRank(world, 10, clock.env)).toBe(0);
    expect((await game).status).toBe(200);
    expect(await listChanges(world)).toEqual([
      [50, 'applied'],
      [10, 'applied'],
    ]);
    expect(world.roblox.group.held(userId)).toEqual([trainee]);
    expect(world.roblox.violations()).toEqual([]);
  },
);

const [long, short] = ['60s', '1s'].map((deadline) => ({ RANKD_SERVER_DEADLINE: deadline }));

test.concurrent('a change of a daemon with a long deadline is not taken over by a command with a short one', async ({
  expect,
}) => {
  await using world = await slowHome();
  const daemon = await world.startDaemon(long);
  const game = daemon.rank(world.secret, { rankeeId: userId, newRankId: 50 });
  await writeBegan(world);
  expect(await setRank(world, 10, { ...short })).toBe(0);
  expect((await game).status).toBe(200);
  expect(await listChanges(world)).toEqual([
    [50, 'applied'],
    [10, 'applied'],
  ]);
  expect(world.roblox.group.held(userId)).toEqual([trainee]);
  expect(world.roblox.violations()).toEqual([]);
});

test.concurrent('a change of a command with a long deadline is not taken over by a daemon with a short one', async ({
  expect,
}) => {
  await using world = await slowHome(3 * writeMs);
  const daemon = await world.startDaemon(short);
  const command = setRank(world, 50, { ...long });
  await writeBegan(world);
  await delay(writeMs / 2);
  expect((await daemon.rank(world.secret, { rankeeId: userId, newRankId: 10 })).status).toBe(503);
  expect(world.roblox.journal.writes(userId)).toHaveLength(1);
  expect(await command).toBe(0);
  expect(new Set(await listChanges(world))).toEqual(
    new Set([
      [50, 'applied'],
      [10, 'failed'],
    ]),
  );
  expect(world.roblox.group.held(userId)).toEqual([captain]);
  expect(world.roblox.violations()).toEqual([]);
});
