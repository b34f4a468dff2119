import { once } from 'node:events';
import { expect, test, vi } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

const { traineeAndCaptain: userId } = sampleUsers;
const { trainee, captain } = sampleRoles;
const roles = [trainee, captain].toSorted((a, b) => a - b);
const day = 86_400_000;

/** The state of the newest suspension; `undefined` if there is none. */
async function state({ home }: OpenCloudHome, env: Record<string, string>): Promise<string | undefined> {
  const { stdout } = await home.run(['suspension', 'list', '--all', '--json'], { env });
  return JSON.parse(stdout).suspensions[0]?.state;
}

const wrote = ({ roblox }: OpenCloudHome, count: number) =>
  vi.waitUntil(() => roblox.journal.writes(userId).length >= count, { interval: 5, timeout: 20_000 });

test('a suspension whose command is killed as it begins, and whose daemon is killed at its end a week later, gives exactly the roles from before back', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  const clock = new SteppedClock(home.path('clock'));

  roblox.faults.add({ operation: 'unassign', kind: 'slow', delayMs: 1_500 });
  const command = home.start(['rank', 'suspend', String(userId), '--for', '3d'], { env: clock.env });
  await wrote(world, 1);
  command.kill('SIGKILL');
  await once(command, 'exit');
  expect(await state(world, clock.env)).toBeUndefined();
  {
    await using daemon = await world.startDaemon(clock.env);
    await expect.poll(() => state(world, clock.env)).toBe('active');
    expect(roblox.group.held(userId)).toEqual([]);
    const answer = await daemon.rank(world.secret, { rankeeId: userId });
    expect([answer.status, JSON.parse(answer.text).code]).toEqual([403, 'member_suspended']);

    clock.step(4 * day); // a clock that jumps under a running daemon is not believed at once
    await expect.poll(() => daemon.log).toContain('jumped forward');
    expect(roblox.group.held(userId)).toEqual([]);
  }

  roblox.faults.add({ operation: 'assign', kind: 'slow', delayMs: 1_500 });
  const writes = roblox.journal.writes(userId).length;
  await using killed = await world.startDaemon(clock.env);
  await wrote(world, writes + 1);
  await killed.stop('SIGKILL');
  await using _daemon = await world.startDaemon(clock.env);
  await expect.poll(() => state(world, clock.env)).toBe('ended');
  expect(roblox.group.held(userId)).toEqual(roles);
  expect(roblox.violations()).toEqual([]);
});
