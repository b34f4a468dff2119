import { appendFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

const { officer: userId, actor } = sampleUsers;

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
