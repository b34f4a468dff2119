import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import type { CliHome } from '../support/run-cli.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

const { traineeAndCaptain: userId } = sampleUsers;
const { recruit, trainee, captain } = sampleRoles;
const roles = [trainee, captain].toSorted((a, b) => a - b);
const day = 86_400_000;

const poll = { interval: 300, timeout: 20_000 };

async function state({ home }: OpenCloudHome): Promise<string | undefined> {
  return (await suspensionsIn(home))[0]?.state;
}

async function suspensionsIn(home: CliHome): Promise<Array<{ rankeeId: number; state: string }>> {
  return (await home.json<{ suspensions: Array<{ rankeeId: number; state: string }> }>('suspension', 'list', '--all'))
    .suspensions;
}

const waitForWrites = ({ roblox }: OpenCloudHome, count: number) =>
  vi.waitUntil(() => roblox.journal.writes(userId).length >= count, { interval: 5, timeout: 20_000 });

test('a suspension gives exactly the previous roles back, although its command and, a week later, its daemon are killed', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  const clock = new SteppedClock(home.path('clock'));

  roblox.faults.add({ operation: 'unassign', kind: 'slow', delayMs: 1_500 });
  const command = home.start(['rank', 'suspend', String(userId), '--for', '3d'], { env: clock.env });
  await waitForWrites(world, 1);
  command.kill('SIGKILL');
  await once(command, 'exit');
  expect(await state(world)).toBeUndefined();
  {
    await using daemon = await world.startDaemon(clock.env);
    await expect.poll(() => state(world), poll).toBe('active');
    expect(roblox.group.held(userId)).toEqual([]);
    const answer = await daemon.rank(world.secret, { rankeeId: userId });
    expect([answer.status, JSON.parse(answer.text).code]).toEqual([403, 'member_suspended']);

    clock.step(4 * day); // a running daemon ends no suspension right after its clock has jumped
    await expect.poll(() => daemon.log).toContain('jumped forward');
    expect(roblox.group.held(userId)).toEqual([]);
  }

  roblox.faults.add({ operation: 'assign', kind: 'slow', delayMs: 1_500 });
  const writes = roblox.journal.writes(userId).length;
  await using killed = await world.startDaemon(clock.env);
  await waitForWrites(world, writes + 1);
  await killed.stop('SIGKILL');
  await using _daemon = await world.startDaemon(clock.env);
  await expect.poll(() => state(world), poll).toBe('ended');
  expect(roblox.group.held(userId)).toEqual(roles);
  expect(roblox.violations()).toEqual([]);
});

/**
 * One row per member: the slow write that is in flight when the daemon is killed, first while the suspension begins and
 * then while it ends.
 */
const stops = [
  { begin: { operation: 'assign' }, back: { operation: 'assign' } },
  { begin: { operation: 'unassign' }, back: { operation: 'assign', skip: 1 } },
  { begin: { operation: 'unassign', skip: 1 }, back: { operation: 'unassign' } },
] as const;

test('a daemon that is killed at each write of a suspension or its end loses no suspension and gives no role twice', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  appendFileSync(home.path('rankd.yaml'), 'policy: { suspension: { role: Recruit } }\n');
  const clock = new SteppedClock(home.path('clock'));
  const members = stops.map((stop, index) => ({ userId: 22_000 + index, ...stop }));
  for (const { userId, begin } of members) {
    roblox.group.setMember(userId, roles);
    roblox.faults.add({ ...begin, kind: 'slow', delayMs: 5_000, userId });
  }
  const { secret: key } = await home.json<{ secret: string }>('key', 'create', 'mod', '--scope', 'suspend');
  await home.json('whitelist', 'add', '1', '--key', 'mod');
  const states = async () => {
    const suspensions = await suspensionsIn(home);
    return members.map(({ userId }) => suspensions.find(({ rankeeId }) => rankeeId === userId)?.state);
  };
  const held = () => members.map(({ userId }) => roblox.group.held(userId));
  const writes = () => members.map(({ userId }) => roblox.journal.writes(userId).length);
  const waitForWriteCounts = (counts: number[]) =>
    vi.waitUntil(() => writes().every((count, index) => count >= (counts[index] ?? 0)), {
      interval: 5,
      timeout: 20_000,
    });

  const first = await world.startDaemon(clock.env);
  const asked = members.map(({ userId: robloxUserId }) =>
    first.post('/v2/suspend?placeid=1', { key, body: { robloxUserId, duration: '3d' } }).catch(() => undefined),
  );
  await waitForWriteCounts([1, 2, 3]);
  await first.stop('SIGKILL');
  await Promise.all(asked);
  {
    await using _daemon = await world.startDaemon(clock.env);
    await expect.poll(states, poll).toEqual(members.map(() => 'active'));
    expect(held()).toEqual(members.map(() => [recruit]));
  }
  for (const { userId, back } of members) roblox.faults.add({ ...back, kind: 'slow', delayMs: 5_000, userId });
  clock.step(7 * day);
  const before = writes();
  const killed = await world.startDaemon(clock.env);
  await waitForWriteCounts(before.map((count, index) => count + index + 1));
  await killed.stop('SIGKILL');
  await using _daemon = await world.startDaemon(clock.env);
  await expect.poll(states, poll).toEqual(members.map(() => 'ended'));
  expect(held()).toEqual(members.map(() => roles));
  expect(roblox.violations()).toEqual([]);
});
