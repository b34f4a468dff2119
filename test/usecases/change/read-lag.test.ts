import { expect, test } from 'vitest';
import { lagEndsAt } from '../../../src/usecases/change/read-member.ts';
import { newChange } from '../../contracts/store/samples.ts';
import { sampleRoles, sampleUsers } from '../../support/fake-open-cloud/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openCloudHome } from '../../support/open-cloud-home.ts';
import { ModelWorld } from '../../tools/model-world.ts';

const { trainee: userId } = sampleUsers;
const { trainee, officer, captain } = sampleRoles;

test.concurrent('a second change is planned from the result of the first, although reads do not show it yet', async () => {
  await using world = await ModelWorld.open();
  world.fake.lagMs = 6_750;
  expect(await world.ask({ userId, rank: 50 })).toMatchObject({ status: 200 });
  expect(await world.ask({ userId, rank: 20 })).toMatchObject({ status: 200 });
  expect(world.fake.group.held(userId)).toEqual([officer]);
});

test.concurrent('a change back to the earlier rank is carried out, although reads still show that rank', async () => {
  await using world = await ModelWorld.open();
  world.fake.lagMs = 6_750;
  expect(await world.ask({ userId, rank: 50 })).toMatchObject({ status: 200 });
  expect(await world.ask({ userId, rank: 10 })).toMatchObject({ status: 200 });
  expect(world.fake.group.held(userId)).toEqual([trainee]);
});

test.concurrent('a change back to the earlier rank is carried out even after many refused requests', async () => {
  await using world = await ModelWorld.open();
  world.fake.lagMs = 6_750;
  expect(await world.ask({ userId, rank: 50 })).toMatchObject({ status: 200 });
  for (let turn = 0; turn < 25; turn += 1)
    expect(await world.ask({ userId, rank: 199 })).toMatchObject({ status: 400 });
  expect(await world.ask({ userId, rank: 10 })).toMatchObject({ status: 200 });
  expect(world.fake.group.held(userId)).toEqual([trainee]);
});

test.concurrent('a step up or down starts from the result of the last change, although reads do not show it yet', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  roblox.lagMs = 700;
  for (const direction of ['promote', 'demote'])
    expect((await home.here(['rank', direction, String(userId)])).code).toBe(0);
  expect(roblox.group.held(userId)).toEqual([trainee]);
});

test.concurrent('a later change made outside rankd is seen once reads can no longer lag', async () => {
  await using world = await ModelWorld.open();
  expect(await world.ask({ userId, rank: 50 })).toMatchObject({ status: 200 });
  world.fake.group.setMember(userId, [officer]);
  expect(await world.ask({ userId, rank: 10 })).toMatchObject({ status: 200 });
  expect(world.fake.group.held(userId)).toEqual([trainee]);
});

test.concurrent('a change after a reverted one does not start from an intermediate state', async () => {
  await using world = await ModelWorld.open();
  world.fake.lagMs = 1_000;
  world.fake.faults.add({ operation: 'unassign', kind: 'status 403', roleId: trainee, times: 2 });
  world.fake.faults.add({ operation: 'unassign', kind: 'slow', roleId: captain, delayMs: 60 });
  expect(await world.ask({ userId, rank: 50 })).toMatchObject({ status: 403 });
  expect(await world.ask({ userId, rank: 20 })).toMatchObject({ status: 200 });
  expect(world.fake.group.held(userId)).toEqual([officer]);
  expect(await world.reconcile()).toEqual([]);
});

test.concurrent('reads that still show the old state do not prove that a change was reverted', async () => {
  await using world = await ModelWorld.open();
  world.fake.lagMs = 6_750;
  world.fake.faults.add({ operation: 'unassign', kind: 'status 403', times: 4 });
  expect(await world.ask({ userId, rank: 50 })).toMatchObject({ status: 504 });
  expect(await world.reconcile()).toEqual([]);
  expect(world.fake.group.held(userId)).toEqual([trainee]);
});

test.concurrent('a read from before the last change does not confirm a write with an inconclusive response', async ({
  expect,
}) => {
  await using world = await ModelWorld.open();
  const { fake } = world;
  expect(await world.ask({ userId, rank: 50 })).toMatchObject({ status: 200 });
  fake.expectNeverWithoutRole(userId);
  fake.faults.add({ operation: 'assign', kind: 'body', body: aboutAnotherMember });
  fake.latencyMs = 800;
  const asked = world.ask({ userId, rank: 10 });
  await expect.poll(() => fake.journal.writes(userId).length, { interval: 1 }).toBe(3);
  fake.lagMs = 6_750; // a read from a different Roblox server can lag further behind
  expect(await asked).toMatchObject({ status: 503 });
  expect(await world.reconcile()).toEqual([]);
  expect(fake.group.held(userId)).toEqual([captain]);
});

const aboutAnotherMember = JSON.stringify({
  path: 'groups/700/memberships/MTAwMg',
  user: 'users/1002',
  role: `groups/700/roles/${officer}`,
  roles: [`groups/700/roles/${officer}`],
});

test.concurrent('after a clock jump, every member counts as just changed for as long as reads can lag', async () => {
  const clock: ManualClock & { jumpedAt?: number } = new ManualClock();
  const written = newChange({ state: 'applied', finishedAt: clock.now() - 60_000 });
  const app = {
    clock,
    store: { lastWritten: async () => written },
    platform: { readLagMs: 8_000 },
    recentWrites: { of: () => undefined },
  } as unknown as Parameters<typeof lagEndsAt>[0];
  const leftMs = async () => (await lagEndsAt(app, written.rankeeId)) - clock.monotonic();
  await clock.skip(1_000);
  expect(await leftMs()).toBe(0);
  clock.jumpedAt = clock.monotonic();
  expect(await leftMs()).toBe(8_000);
  await clock.skip(7_000);
  expect(await leftMs()).toBe(1_000);
  await clock.skip(2_000);
  expect(await leftMs()).toBe(0);
});
