import { appendFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type FakeOpenCloud, sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

const { officer: userId, actor } = sampleUsers;
const { recruit, officer, captain } = sampleRoles;

/** What happens to a suspended member before the end, and what has become of the suspension and of the roles after it. */
const rows: Array<
  [what: string, (group: FakeOpenCloud['group'], member: number) => void, state: string, roles?: number[]]
> = [
  ['nothing', () => undefined, 'ended', [officer, captain]],
  ['the member leaves', (group, member) => group.removeMember(member), 'forfeited'],
  ['somebody gives other roles', (group, member) => group.setMember(member, [captain]), 'superseded', [captain]],
  ['somebody takes the role of suspended members', (group, member) => group.setMember(member, []), 'superseded', []],
  [
    'somebody gives a role besides',
    (group, member) => group.setMember(member, [recruit, officer]),
    'superseded',
    [recruit, officer],
  ],
];

test.concurrent('what becomes of suspensions whose end comes while the daemon is down for a week', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  appendFileSync(home.path('rankd.yaml'), 'policy: { suspension: { role: Recruit } }\n');
  const clock = new SteppedClock(home.path('clock'));
  const members = rows.map((_, index) => 21_000 + index);
  {
    await using _daemon = await world.startDaemon(clock.env);
    for (const member of members) {
      roblox.group.setMember(member, [officer, captain]);
      const { code } = await home.run(['rank', 'suspend', String(member), '--for', '3d'], { env: clock.env });
      expect([code, roblox.group.held(member)]).toEqual([0, [recruit]]);
    }
  }
  for (const [index, [, meanwhile]] of rows.entries()) meanwhile(roblox.group, members[index] ?? 0);
  clock.step(7 * 86_400_000);
  await using _daemon = await world.startDaemon(clock.env);
  const states = async () => {
    const { stdout } = await home.run(['suspension', 'list', '--all', '--json'], { env: clock.env });
    const { suspensions } = JSON.parse(stdout) as { suspensions: Array<{ rankeeId: number; state: string }> };
    return members.map((member) => suspensions.find(({ rankeeId }) => rankeeId === member)?.state);
  };
  await expect.poll(states, { timeout: 20_000 }).toEqual(rows.map(([, , state]) => state));
  const told = rows.map(([what], index) => [what, roblox.group.held(members[index] ?? 0)]);
  expect(told).toEqual(rows.map(([what, , , roles]) => [what, roles?.toSorted((a, b) => a - b)]));
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
