import { expect, test } from 'vitest';
import { codeOf, messageOf } from '../../support/answers.ts';
import { onOpenCloud, sampleUsers } from '../../support/open-cloud-app.ts';

const { trainee: bob, actor, otherAdmin } = sampleUsers;

test(
  'an acting account that left the group is reported as such, and is checked again before the next report',
  onOpenCloud(async ({ fake, clock, rank }) => {
    const roleIds = fake.group.held(actor) ?? [];
    fake.group.removeMember(actor);
    clock.skip(61_000); // longer than it is remembered
    const answer = await rank(bob);
    expect(codeOf(answer)).toBe('above_acting_account');
    expect(messageOf(answer)).toMatch(/rankd's account \(9001\) is not a member of the group.* join/);
    const looks = () => fake.journal.requests('memberships').filter(({ userId }) => userId === actor).length;
    const soFar = looks();
    await rank(bob);
    expect(looks()).toBe(soFar);
    fake.group.setMember(actor, roleIds);
    clock.skip(5_000);
    expect((await rank(bob)).status).toBe(200);
  }),
);

test(
  'a failed read of a caller with hardly any time left is not reused for later callers',
  onOpenCloud(async ({ app: { group }, fake, clock, rank, call }) => {
    clock.skip(61_000);
    const late = { ...call(), deadlineAt: clock.monotonic() };
    await expect(group.acting(late)).rejects.toMatchObject({ code: 'platform_unavailable' });
    expect(codeOf(await rank(otherAdmin))).toBe('above_acting_account');
    expect(fake.journal.writes(otherAdmin)).toEqual([]);
  }),
);

test(
  'an acting account that could not be asked for is asked for again after 5 s, and until then Roblox decides',
  onOpenCloud(async ({ app: { group }, fake, clock, call }) => {
    clock.skip(61_000);
    fake.faults.add({ operation: 'introspect', kind: 'status 500', times: 100 });
    expect(await group.acting(call())).toBeUndefined();
    const asked = fake.journal.requests('introspect').length;
    expect(await group.acting(call())).toBeUndefined();
    expect(fake.journal.requests('introspect')).toHaveLength(asked);
    fake.faults.clear();
    clock.skip(5_000);
    expect(await group.acting(call())).toMatchObject({ userId: actor, rank: 200 });
  }),
);
