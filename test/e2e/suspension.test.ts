import { appendFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type FakeOpenCloud, sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

const { officer: userId, actor } = sampleUsers;
const { recruit, trainee, officer, captain } = sampleRoles;

type Group = FakeOpenCloud['group'];

/** What happens to a suspended member, and what has become of the suspension and of the roles after its end. */
interface Row {
  before?: number[];
  /** Seen by a daemon before the end, once after the other. */
  seen?: Array<(group: Group, member: number) => void>;
  /** While no daemon runs, until after the end. */
  unseen?: (group: Group, member: number) => void;
  state: string;
  roles: number[] | undefined;
}

const leave = (group: Group, member: number) => group.removeMember(member);
const join = (group: Group, member: number) => group.setMember(member, []);

const rows: Record<string, Row> = {
  nothing: { state: 'ended', roles: [officer, captain] },
  'a role from before is deleted': {
    before: [trainee, captain],
    unseen: (group) => {
      group.roles = group.roles.filter(({ id }) => id !== trainee);
    },
    state: 'ended',
    roles: [captain],
  },
  'the member leaves': { unseen: leave, state: 'forfeited', roles: undefined },
  'the member leaves, which is noted, and comes back after the end': {
    seen: [leave],
    unseen: join,
    state: 'forfeited',
    roles: [],
  },
  'the member leaves and comes back, and is suspended again': { seen: [leave, join], state: 'ended', roles: [] },
  'the member leaves, comes back and leaves': {
    seen: [leave, join],
    unseen: leave,
    state: 'forfeited',
    roles: undefined,
  },
  'somebody gives other roles': {
    unseen: (group, member) => group.setMember(member, [captain]),
    state: 'superseded',
    roles: [captain],
  },
  'somebody takes the role of suspended members': { unseen: join, state: 'superseded', roles: [] },
  'somebody gives a role besides': {
    unseen: (group, member) => group.setMember(member, [recruit, officer]),
    state: 'superseded',
    roles: [recruit, officer],
  },
};

test.concurrent('what becomes of suspensions whose end comes while the daemon is down for a week, and the Roblox key is dead for a while after', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  appendFileSync(home.path('rankd.yaml'), 'policy: { suspension: { role: Recruit } }\n');
  const clock = new SteppedClock(home.path('clock'));
  const members = Object.values(rows).map((row, index) => ({ userId: 21_000 + index, ...row }));
  const holds = async () => {
    const { stdout } = await home.run(['suspension', 'list', '--all', '--json'], { env: clock.env });
    const { suspensions } = JSON.parse(stdout) as {
      suspensions: Array<{ rankeeId: number; state: string; awaySince: string | null; message: string }>;
    };
    return members.map(({ userId }) => suspensions.find(({ rankeeId }) => rankeeId === userId));
  };
  {
    await using daemon = await world.startDaemon(clock.env);
    const { secret: key } = await home.json<{ secret: string }>('key', 'create', 'mod', '--scope', 'suspend');
    await home.json('whitelist', 'add', '1', '--key', 'mod');
    for (const { userId, before = [officer, captain] } of members) roblox.group.setMember(userId, before);
    await Promise.all(
      members.map(async ({ userId: robloxUserId }) => {
        const body = { robloxUserId, duration: '3d' };
        const answer = await daemon.post('/v2/suspend?placeid=1', { key, body });
        expect([answer.status, roblox.group.held(robloxUserId)]).toEqual([200, [recruit]]);
      }),
    );
  }
  for (const step of [0, 1]) {
    for (const { userId, seen = [] } of members) seen[step]?.(roblox.group, userId);
    await using _daemon = await world.startDaemon(clock.env); // it looks for leavers as it starts
    const isSeen = async () => {
      const kept = await holds();
      return members.every(({ userId, seen = [] }, index) =>
        seen[step] === join
          ? roblox.group.held(userId)?.join() === String(recruit)
          : seen[step] !== leave || kept[index]?.awaySince !== null,
      );
    };
    await expect.poll(isSeen, { timeout: 20_000 }).toBe(true);
  }
  for (const { unseen, userId } of members) unseen?.(roblox.group, userId);
  clock.step(7 * 86_400_000);
  roblox.credential.enabled = false;
  await using daemon = await world.startDaemon(clock.env);
  await expect.poll(() => daemon.log).toContain('Roblox does not accept');
  expect((await holds()).map((hold) => hold?.state)).toEqual(members.map(() => 'active'));
  const [{ userId: first = 0 } = {}] = members;
  roblox.faults.add({ operation: 'assign', kind: 'reset', when: 'after', userId: first, times: 4 }); // it is read what became of it
  roblox.credential.enabled = true;
  const states = async () => (await holds()).map((hold) => hold?.state);
  await expect.poll(states, { timeout: 30_000 }).toEqual(members.map(({ state }) => state));
  const told = members.map(({ userId }) => roblox.group.held(userId));
  expect(told).toEqual(members.map(({ roles }) => roles?.toSorted((a, b) => a - b)));
  const changes = await home.json<{ changes: Array<{ rankeeId: number; message: string }> }>('history', 'list');
  const { message } = changes.changes.find(({ rankeeId }) => rankeeId === 21_001) ?? {};
  expect(message).toContain(`The group has no role ${trainee} any more.`);
  expect(roblox.violations()).toEqual([]);
});

test.concurrent('a return that can not be made fails in doctor and shows in status, until it can', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  const clock = new SteppedClock(home.path('clock'));
  {
    await using _daemon = await world.startDaemon(clock.env);
    const { code } = await home.run(['rank', 'suspend', String(userId), '--for', '3d'], { env: clock.env });
    expect(code).toBe(0);
  }
  roblox.group.setMember(actor, [sampleRoles.trainee]);
  clock.step(4 * 86_400_000);
  await using _daemon = await world.startDaemon(clock.env);
  const status = async () => (await home.run(['status'], { env: clock.env })).stdout;
  await expect.poll(status).toContain(`STUCK: Member ${userId} can't be given the roles from before`);
  const doctor = await home.run(['doctor'], { env: clock.env });
  expect(doctor.stdout).toMatch(new RegExp(`FAIL +suspension +Member ${userId} can't be given`));
  expect(doctor.code).toBe(5);

  roblox.group.setMember(actor, [sampleRoles.admin]);
  expect((await home.run(['reload'], { env: clock.env })).code).toBe(0);
  await expect.poll(status).not.toContain('STUCK');
  expect(roblox.group.held(userId)).toEqual([sampleRoles.officer]);
});

const flaws = [
  ['Nobody', 'does not fit the group: The group has no role Nobody'],
  ['200', 'which is not below the acting account'],
  ['20', 'which policy.locked_roles names'],
] as const;

test.concurrent.each(flaws)(
  'a role for suspended members that does not do (%s) is told by config check and by doctor',
  async (role, flaw) => {
    await using world = await openCloudHome();
    appendFileSync(world.home.path('rankd.yaml'), `policy: { locked_roles: [20], suspension: { role: ${role} } }\n`);
    for (const command of [['config', 'check'], ['doctor']]) {
      const { stdout, stderr } = await world.home.run(command);
      expect(stdout + stderr).toContain(flaw);
    }
  },
);
