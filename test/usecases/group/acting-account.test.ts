import { expect, test } from 'vitest';
import { codeOf, messageOf } from '../../support/answers.ts';
import { onOpenCloud, sampleUsers } from '../../support/open-cloud-app.ts';

const { trainee: bob, actor } = sampleUsers;

test(
  'an acting account that left the group is told as that, and is looked for again before it is told once more',
  onOpenCloud(async ({ fake, clock, rank }) => {
    const roleIds = fake.group.held(actor) ?? [];
    fake.group.removeMember(actor);
    clock.skip(61_000); // longer than it is remembered
    const answer = await rank(bob);
    expect(codeOf(answer)).toBe('above_acting_account');
    expect(messageOf(answer)).toMatch(/account.* rankd acts with \(9001\) is not a member of the group.* join/);
    const looks = () => fake.journal.requests('memberships').filter(({ userId }) => userId === actor).length;
    const soFar = looks();
    await rank(bob);
    expect(looks()).toBe(soFar);
    fake.group.setMember(actor, roleIds);
    clock.skip(5_000);
    expect((await rank(bob)).status).toBe(200);
  }),
);
