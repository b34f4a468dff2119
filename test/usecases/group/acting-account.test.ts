import { expect, test } from 'vitest';
import { codeOf, messageOf } from '../../support/answers.ts';
import { onOpenCloud, sampleUsers } from '../../support/open-cloud-app.ts';

const { trainee: bob, actor, otherAdmin } = sampleUsers;

test(
  'an acting account that left the group is reported, and is read again after 5 s',
  onOpenCloud(async ({ fake, clock, rank }) => {
    const roleIds = fake.group.held(actor) ?? [];
    fake.group.removeMember(actor);
    clock.skip(61_000); // longer than the acting account is cached
    const answer = await rank(bob);
    expect(codeOf(answer)).toBe('above_acting_account');
    expect(messageOf(answer)).toMatch(/The acting account \(user 9001\) is not a member of the group.* join/);
    const reads = () => fake.journal.requests('memberships').filter(({ userId }) => userId === actor).length;
    const soFar = reads();
    await rank(bob);
    expect(reads()).toBe(soFar);
    fake.group.setMember(actor, roleIds);
    clock.skip(5_000);
    expect((await rank(bob)).status).toBe(200);
  }),
);

test(
  'a read that failed because its caller had no time left is not reused for later callers',
  onOpenCloud(async ({ app: { group }, fake, clock, rank, call }) => {
    clock.skip(61_000);
    const late = { ...call(), deadlineAt: clock.monotonic() };
    await expect(group.acting(late)).rejects.toMatchObject({ code: 'platform_unavailable' });
    expect(codeOf(await rank(otherAdmin))).toBe('above_acting_account');
    expect(fake.journal.writes(otherAdmin)).toEqual([]);
  }),
);

test(
  'if the acting account cannot be read, rankd retries after 5 s and lets Roblox decide in the meantime',
  onOpenCloud(async ({ app: { group }, fake, clock, call }) => {
    clock.skip(61_000);
    fake.faults.add({ operation: 'introspect', kind: 'status 500', times: 100 });
    expect(await group.acting(call())).toBeUndefined();
    const introspections = fake.journal.requests('introspect').length;
    expect(await group.acting(call())).toBeUndefined();
    expect(fake.journal.requests('introspect')).toHaveLength(introspections);
    fake.faults.clear();
    clock.skip(5_000);
    expect(await group.acting(call())).toMatchObject({ userId: actor, rank: 200 });
  }),
);
