import { describe, expect, test, vi } from 'vitest';
import { codeOf } from '../support/answers.ts';
import { membershipResource } from '../support/fake-open-cloud/resources.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

const { base, trainee, officer, captain } = sampleRoles;
const { trainee: bob, traineeAndCaptain: veteran } = sampleUsers;
const always = Number.POSITIVE_INFINITY;

vi.setConfig({ maxConcurrency: 12 });

function answerShowing({ fake }: OpenCloudApp, roleIds: number[]): string {
  return JSON.stringify(membershipResource(fake.group, bob, roleIds, 'withoutBase'));
}

describe('reads that lag behind writes', () => {
  const lagging = { fake: { lagMs: 400 } };

  test.concurrent(
    'a change whose responses show the earlier state is confirmed once reads have caught up',
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.faults.add({ operation: 'assign', kind: 'body', when: 'after', body: answerShowing(system, [trainee]) });
      fake.faults.add({
        operation: 'unassign',
        kind: 'body',
        when: 'after',
        body: answerShowing(system, [trainee, officer]),
      });
      expect((await system.rank(bob)).status).toBe(200);
      expect(fake.group.held(bob)).toEqual([officer]);
      expect(fake.journal.writes()).toHaveLength(2);
    }, lagging),
  );

  test.concurrent(
    'the member is read with backoff until reads have caught up',
    onOpenCloud(
      async (system) => {
        const { faults, journal } = system.fake;
        faults.add({ operation: 'assign', kind: 'body', when: 'after', body: answerShowing(system, [trainee]) });
        expect((await system.rank(bob)).status).toBe(200);
        const [assigned, unassigned] = journal.writes(bob);
        const reads = journal
          .requests('memberships')
          .filter(({ at }) => at > (assigned?.at ?? 0) && at < (unassigned?.at ?? 0));
        const [first = 0, second = 0, ...others] = reads.slice(1).map(({ at }, index) => at - (reads[index]?.at ?? 0));
        expect(first).toBeGreaterThanOrEqual(140);
        expect(second).toBeGreaterThanOrEqual(290);
        expect(others.every((ms) => ms >= 590)).toBe(true);
      },
      { fake: { lagMs: 700 }, deadlineMs: 1_900 },
    ),
  );

  test.concurrent(
    'a change back right after a change does not count as already done',
    onOpenCloud(async (system) => {
      expect((await system.rank(bob)).status).toBe(200);
      const back = await system.rank(bob, { newRankId: 10 });
      expect(back.status).toBe(200);
      expect(system.fake.group.held(bob)).toEqual([trainee]);
    }, lagging),
  );

  test.concurrent(
    'a change right after a compensated one starts from the member’s real roles',
    onOpenCloud(async (system) => {
      system.fake.faults.add({ operation: 'unassign', kind: 'status 403', roleId: trainee, times: 2 });
      expect(codeOf(await system.rank(bob))).toBe('above_acting_account');
      await system.clock.sleep(380); // reads now show both roles
      expect((await system.rank(bob)).status).toBe(200);
      expect(system.fake.group.held(bob)).toEqual([officer]);
    }, lagging),
  );

  test.concurrent(
    'a moderator’s change right after a change is seen once reads have caught up',
    onOpenCloud(async (system) => {
      expect((await system.rank(bob)).status).toBe(200);
      system.fake.group.change(bob, [captain], system.fake.now());
      expect((await system.rank(bob)).status).toBe(200);
      expect(system.fake.group.held(bob)).toEqual([officer]);
    }, lagging),
  );

  test.concurrent(
    'an unknown outcome right after another change is not reconciled by stale reads from before both',
    onOpenCloud(async (system) => {
      const { fake } = system;
      expect((await system.rank(bob, { newRankId: 50 })).status).toBe(200);
      expect((await system.rank(bob, { newRankId: 10 })).status).toBe(200);
      await system.clock.sleep(300);
      fake.lagMs = 690;
      fake.faults.add({ operation: 'assign', kind: 'status 401', times: 1 });
      fake.faults.add({ operation: 'assign', kind: 'reset', times: always });
      const answer = await system.rank(bob, { newRankId: 50 });
      expect(answer.status).not.toBe(200);
      expect(fake.group.held(bob)).toEqual([trainee]);
    }, lagging),
  );
});

test.concurrent(
  'a write whose response is about another user is confirmed by reads, one of which may fail',
  onOpenCloud(async (system) => {
    const { fake } = system;
    const aboutVeteran = JSON.stringify(membershipResource(fake.group, veteran, [officer], 'withoutBase'));
    fake.faults.add({ operation: 'assign', kind: 'body', when: 'after', body: aboutVeteran });
    fake.faults.add({ operation: 'memberships', userId: bob, kind: 'status 400', skip: 1 });
    const answer = await system.rank(bob);
    expect(answer.status, answer.text).toBe(200);
    expect(fake.group.held(bob)).toEqual([officer]);
    expect(fake.journal.writes()).toHaveLength(2);
    expect(fake.journal.requests('memberships').filter(({ userId }) => userId === bob)).toHaveLength(3);
  }),
);

describe('a write that is accepted without effect', () => {
  test.concurrent(
    'is distinguished from lag and reported as a problem with the key; nothing is changed',
    onOpenCloud(async (system) => {
      const { fake } = system;
      expect((await system.rank(veteran)).status).toBe(200); // from here on, rankd knows that the key can write
      fake.credential.scopes = [{ name: 'group', operations: ['read'], groupIds: ['*'] }];
      fake.acceptsWritesWithoutScope = true;
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([502, 'platform_credential']);
      expect(await system.changeOf(answer)).toMatchObject({ state: 'failed', code: 'platform_credential' });
      expect(fake.group.held(bob)).toEqual([trainee]);
      expect(fake.journal.writes(bob)).toHaveLength(1);
    }),
  );

  test.concurrent(
    'as a second step leaves no half-done change: the first step is reverted',
    onOpenCloud(async (system) => {
      const body = answerShowing(system, [trainee, officer]);
      system.fake.faults.add({ operation: 'unassign', roleId: trainee, kind: 'body', body, times: always });
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([502, 'platform_credential']);
      expect(system.fake.group.held(bob)).toEqual([trainee]);
      expect(await system.changeOf(answer)).toMatchObject({ state: 'failed', rolesAfter: [base, trainee] });
    }),
  );
});

describe('members with several roles', () => {
  test.concurrent(
    'lose the highest one and those above the target, and retain the lower ones',
    onOpenCloud(async (system) => {
      expect((await system.rank(veteran)).status).toBe(200);
      expect(system.fake.group.held(veteran)).toEqual([officer, trainee]);
    }),
  );

  test.concurrent(
    'of a group whose 40 roles fill several pages get the requested one',
    onOpenCloud(
      async (system) => {
        const { fake, clock } = system;
        const extra = Array.from({ length: 33 }, (_, index) => ({
          id: 900 + index,
          name: `R${index}`,
          rank: 60 + index,
        }));
        fake.group.roles.push(...extra);
        fake.group.setMember(
          bob,
          extra.slice(0, 25).map(({ id }) => id),
        );
        clock.skip(61_000);
        expect((await system.rank(bob, { newRankId: 85 })).status).toBe(200);
        expect(fake.group.held(bob)).toEqual([...extra.slice(0, 24).map(({ id }) => id), 925]);
        expect((await system.rank(bob, { newRankId: 924 })).status).toBe(200);
        expect((await system.rank(bob, { newRankId: base })).status).toBe(200);
        expect(fake.group.held(bob)).toEqual([]);
      },
      { deadlineMs: 20_000 },
    ),
  );

  test.concurrent.each(['withoutBase', 'withBase'] as const)(
    'are read correctly if roles are listed %s',
    (rolesField) =>
      onOpenCloud(async (system) => {
        system.fake.rolesField = rolesField;
        expect((await system.rank(sampleUsers.memberOnly)).status).toBe(200);
        expect(system.fake.group.held(sampleUsers.memberOnly)).toEqual([officer]);
        expect((await system.rank(sampleUsers.memberOnly, { newRankId: base })).status).toBe(200);
        expect(system.fake.group.held(sampleUsers.memberOnly)).toEqual([]);
        expect((await system.rank(veteran, { newRankId: base })).status).toBe(200);
        expect(system.fake.group.held(veteran)).toEqual([]);
      })(),
  );

  test.concurrent(
    'are read correctly if responses have only the single role',
    onOpenCloud(async (system) => {
      system.fake.rolesField = 'absent';
      expect((await system.rank(sampleUsers.memberOnly, { newRankId: 10 })).status).toBe(200);
      expect(system.fake.group.held(sampleUsers.memberOnly)).toEqual([trainee]);
    }),
  );
});

describe('if, during a change, a moderator', () => {
  function duringFirstWrite({ fake }: OpenCloudApp, act: () => void): void {
    fake.faults.add({ operation: 'assign', kind: 'slow', delayMs: 150 });
    const waiting = setInterval(() => {
      if (fake.journal.writes(bob).length === 0) return;
      clearInterval(waiting);
      act();
    }, 5);
  }

  test.concurrent(
    'gives the member a higher role, the change is never reported or recorded as applied',
    onOpenCloud(async (system) => {
      const { fake } = system;
      duringFirstWrite(system, () => fake.group.change(bob, [trainee, captain], fake.now()));
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
      await system.recover();
      const change = await system.changeOf(answer);
      expect(change).toMatchObject({ state: 'failed', code: 'platform_rejected' });
      expect(change.rolesAfter).toEqual([base, ...(fake.group.held(bob) ?? [])].sort((a, b) => a - b));
      expect((await system.rank(bob)).status).toBe(200);
      expect(fake.group.held(bob)).toEqual([officer]);
    }),
  );

  test.concurrent(
    'takes the old role, the change still succeeds',
    onOpenCloud(async (system) => {
      const { fake } = system;
      duringFirstWrite(system, () => fake.group.change(bob, [], fake.now()));
      expect((await system.rank(bob)).status).toBe(200);
      expect(fake.group.held(bob)).toEqual([officer]);
    }),
  );

  test.concurrent(
    'removes the member from the group, the change fails with member_not_found',
    onOpenCloud(async (system) => {
      const { fake } = system;
      duringFirstWrite(system, () => fake.group.removeMember(bob));
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([404, 'member_not_found']);
      expect((await system.changeOf(answer)).state).toBe('refused');
    }),
  );

  test.concurrent(
    'removes the member between the two writes, the change is reconciled to member_not_found',
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.faults.add({ operation: 'unassign', kind: 'slow', delayMs: 150 });
      const waiting = setInterval(() => {
        if (fake.journal.writes(bob).length < 2) return;
        clearInterval(waiting);
        fake.group.removeMember(bob);
      }, 5);
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
      await system.recover();
      expect(await system.changeOf(answer)).toMatchObject({ state: 'refused', code: 'member_not_found' });
    }),
  );
});
