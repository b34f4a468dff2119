import { describe, expect, test, vi } from 'vitest';
import { codeOf } from '../support/answers.ts';
import type { Fault } from '../support/fake-open-cloud/index.ts';
import { membershipResource } from '../support/fake-open-cloud/resources.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

const { base, recruit, trainee, officer } = sampleRoles;
const { trainee: bob, memberOnly: eve } = sampleUsers;
const always = Number.POSITIVE_INFINITY;

vi.setConfig({ maxConcurrency: 12 });

describe('a write that is accepted with a response that shows no roles', () => {
  const lagging = { fake: { lagMs: 400 } };

  test.concurrent.each(['empty object', 'no content'] as const)(
    '(%s) is never sent again, and is confirmed by reads',
    (writeAnswer) =>
      onOpenCloud(async (system) => {
        const { fake } = system;
        fake.writeAnswer = writeAnswer;
        const answer = await system.rank(bob);
        expect(answer.status, answer.text).toBe(200);
        expect(fake.group.held(bob)).toEqual([officer]);
        expect(fake.journal.writes(bob)).toHaveLength(2);
      })(),
  );

  test.concurrent(
    'is confirmed once lagging reads have caught up',
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.writeAnswer = 'no content';
      expect((await system.rank(bob)).status).toBe(200);
      expect(fake.journal.writes(bob)).toHaveLength(2);
    }, lagging),
  );

  test.concurrent.each(['html', 'empty', 'truncated', 'oversized', 'cut'] as const)(
    '(%s) but not carried out is not sent again either: nothing is changed, and the caller may retry',
    (kind) =>
      onOpenCloud(async (system) => {
        const { fake } = system;
        fake.faults.add({ operation: 'assign', kind });
        const answer = await system.rank(bob);
        expect([answer.status, codeOf(answer)]).toEqual([503, 'platform_unavailable']);
        expect(await system.changeOf(answer)).toMatchObject({ state: 'failed', code: 'platform_unavailable' });
        expect(fake.group.held(bob)).toEqual([trainee]);
        expect(fake.journal.writes(bob)).toHaveLength(1);
      })(),
  );
});

describe('a transient refusal', () => {
  test.concurrent.each([
    [400, 'FailedToAcquireLock'],
    [403, 'FailedToAcquireLock'],
    [409, 'FailedToAcquireLock'],
    [400, 'TooManyRequests'],
    [403, 'TooManyRequests'],
    [404, 'Please try again in a moment.'],
    [400, 'Migration in progress.'],
  ])('(%i %s) is retried, whatever its status', (status, text) =>
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.membershipLock = { ms: 300, status, text };
      for (const newRankId of [20, 10]) {
        const answer = await system.rank(bob, { newRankId });
        expect(answer.status, answer.text).toBe(200);
      }
      expect(fake.group.held(bob)).toEqual([trainee]);
    })(),
  );

  test.concurrent(
    'of a second step is retried after half a second, before any compensation',
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.faults.add({ operation: 'unassign', kind: 'status 403' });
      expect((await system.rank(bob)).status).toBe(200);
      expect(fake.group.held(bob)).toEqual([officer]);
      const [, refused, again] = fake.journal.writes(bob);
      expect((again?.at ?? 0) - (refused?.endedAt ?? 0)).toBeGreaterThanOrEqual(500);
      expect(fake.journal.writes(bob)).toHaveLength(3);
    }),
  );
});

describe('the writes to one membership', () => {
  /** The milliseconds between the end of each write and the start of the next. */
  const gaps = (writes: Array<{ at: number; endedAt?: number }>) =>
    writes.slice(1).map(({ at }, index) => at - (writes[index]?.endedAt ?? 0));

  test.concurrent(
    'are sent without a pause until one meets a lock, then 300 ms apart for ten minutes, even to other members',
    onOpenCloud(
      async (system) => {
        const { fake, clock } = system;
        expect((await system.rank(bob)).status).toBe(200);
        expect(Math.max(...gaps(fake.journal.writes(bob)))).toBeLessThan(200);

        fake.membershipLock = { ms: 300, status: 400, text: 'FailedToAcquireLock' };
        expect((await system.rank(bob, { newRankId: 10 })).status).toBe(200);
        fake.group.setMember(eve, [trainee]);
        expect((await system.rank(eve)).status).toBe(200);
        expect(fake.journal.writes(eve).map(({ status }) => status)).toEqual([200, 200]);
        expect(Math.min(...gaps(fake.journal.writes(eve)))).toBeGreaterThanOrEqual(300);

        fake.membershipLock = undefined;
        clock.skip(580_000);
        expect((await system.rank(eve, { newRankId: 10 })).status).toBe(200);
        expect(Math.min(...gaps(fake.journal.writes(eve).slice(2)))).toBeGreaterThanOrEqual(300);
        clock.skip(21_000);
        expect((await system.rank(eve)).status).toBe(200);
        expect(Math.max(...gaps(fake.journal.writes(eve).slice(4)))).toBeLessThan(200);
      },
      { deadlineMs: 5_000 },
    ),
  );
});

describe('a refusal of a write that was carried out', () => {
  const refusals = ['status 400', 'status 401', 'status 403', 'status 404'] as const;

  test.concurrent.each(refusals)('(%s, of the first step) does not count if reads show the effect', (kind) =>
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.expectNeverWithoutRole(bob);
      fake.faults.add({ operation: 'assign', kind, when: 'after' });
      const answer = await system.rank(bob);
      expect(answer.status, answer.text).toBe(200);
      expect(fake.group.held(bob)).toEqual([officer]);
    })(),
  );

  test.concurrent.each(refusals)('(%s, of every try of the second step) does not count either', (kind) =>
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.expectNeverWithoutRole(bob);
      fake.faults.add({ operation: 'unassign', kind, when: 'after', times: always });
      const answer = await system.rank(bob);
      expect(answer.status, answer.text).toBe(200);
      expect(fake.group.held(bob)).toEqual([officer]);
      expect((await system.changeOf(answer)).rolesAfter).toEqual([base, officer].sort((a, b) => a - b));
    })(),
  );

  test.concurrent(
    'never leaves the member with fewer roles than before and after, even if reads lag',
    onOpenCloud(
      async (system) => {
        const { fake } = system;
        fake.expectNeverWithoutRole(bob);
        fake.lagMs = 3_000;
        fake.faults.add({ operation: 'unassign', kind: 'status 403', when: 'after', roleId: trainee, times: 2 });
        const answer = await system.rank(bob);
        expect([answer.status, codeOf(answer)]).toEqual([403, 'above_acting_account']);
        expect(fake.group.held(bob)).toEqual([trainee]);
        expect((await system.changeOf(answer)).rolesAfter).toEqual([base, trainee].sort((a, b) => a - b));
      },
      { readLagMs: 3_000 },
    ),
  );

  test.concurrent(
    'is not compensated while the member cannot be read',
    onOpenCloud(async (system) => {
      const { fake } = system;
      fake.expectNeverWithoutRole(bob);
      fake.faults.add({ operation: 'unassign', kind: 'status 403', when: 'after', times: 2 });
      fake.faults.add({ operation: 'memberships', userId: bob, kind: 'status 400', skip: 1 });
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
      expect(fake.journal.writes(bob)).toHaveLength(3);
      await system.recover();
      expect(await system.changeOf(answer)).toMatchObject({ state: 'applied' });
      expect(fake.group.held(bob)).toEqual([officer]);
    }),
  );
});

describe('a refusal that claims that the user is not a member', () => {
  test.concurrent.each<Pick<Fault, 'kind' | 'body'>>([
    { kind: 'status 404' },
    { kind: 'status 400', body: '{"errors":[{"code":3,"message":"The user is invalid or does not exist."}]}' },
  ])('($kind) is not reported as "not a member" if reads show the member', (refusal) =>
    onOpenCloud(async (system) => {
      system.fake.faults.add({ operation: 'assign', ...refusal });
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([502, 'platform_rejected']);
      expect(await system.changeOf(answer)).toMatchObject({ state: 'failed' });
    })(),
  );

  test.concurrent(
    '(404) is neither reported as "not a member" nor stored if the member cannot be read',
    onOpenCloud(async (system) => {
      const { faults } = system.fake;
      faults.add({ operation: 'assign', kind: 'status 404' });
      faults.add({ operation: 'memberships', userId: bob, kind: 'status 400', skip: 1 });
      const answer = await system.rank(bob, { idempotencyKey: 'one' });
      expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
      await system.recover();
      expect(await system.changeOf(answer)).toMatchObject({ state: 'failed', code: 'platform_unavailable' });
      expect((await system.rank(bob, { idempotencyKey: 'one' })).status).toBe(200);
    }),
  );
});

describe('a refusal of a first write while the member cannot be read', () => {
  test.concurrent.each<[Partial<Fault> & Pick<Fault, 'kind'>, 'before' | 'after']>([
    [{ kind: 'status 429', headers: { 'retry-after': '60' } }, 'after'],
    [{ kind: 'status 429', headers: { 'retry-after': '60' } }, 'before'],
    [{ kind: 'status 403' }, 'after'],
    [{ kind: 'status 400' }, 'after'],
  ])(
    '(%o, %s the write was carried out) proves nothing: the outcome is unknown until a read shows it',
    (refusal, when) =>
      onOpenCloud(
        async (system) => {
          const { fake } = system;
          fake.faults.add({ operation: 'assign', ...refusal, when, times: always });
          fake.faults.add({ operation: 'memberships', userId: bob, kind: 'status 503', skip: 1, times: always });
          const answer = await system.rank(bob);
          expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
          expect((await system.changeOf(answer)).state).toBe('unknown');
          fake.faults.clear();
          await system.recover();
          expect((await system.changeOf(answer)).state).toBe(when === 'after' ? 'applied' : 'failed');
          expect(fake.group.held(bob)).toEqual([when === 'after' ? officer : trainee]);
        },
        { deadlineMs: 1_000 },
      )(),
  );
});

describe('a response that shows a role that the member does not hold', () => {
  const addFalseResponse = ({ fake }: OpenCloudApp, userId: number, times: number) =>
    fake.faults.add({
      ...{ operation: 'assign', kind: 'body', userId, times },
      body: JSON.stringify(membershipResource(fake.group, userId, [trainee, officer], 'withoutBase')),
    });

  test.concurrent(
    'is detected by the next step of the change: the role is given again and confirmed by a read',
    onOpenCloud(async (system) => {
      const { fake } = system;
      addFalseResponse(system, bob, 1);
      const answer = await system.rank(bob);
      expect(answer.status, answer.text).toBe(200);
      expect(fake.group.held(bob)).toEqual([officer]);
      expect((await system.changeOf(answer)).rolesAfter).toEqual([base, officer].sort((a, b) => a - b));
      expect(system.logLines.filter((line) => line.includes('was gone a moment later'))).toHaveLength(1);
      expect(system.app.trust.believesAnswers).toBe(false);
    }),
  );

  test.concurrent(
    'costs no member a role if it repeats: an unconfirmed change does not continue, and the old role is given back',
    onOpenCloud(
      async (system) => {
        const { fake } = system;
        addFalseResponse(system, bob, always);
        addFalseResponse(system, eve, always);
        const answer = await system.rank(bob);
        expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
        fake.expectNeverWithoutRole(eve);
        fake.group.setMember(eve, [trainee]);
        expect((await system.rank(eve)).status).toBe(502);
        expect(fake.group.held(eve)).toEqual([trainee]);

        fake.faults.clear();
        // the daemon reconciles the change
        await vi.waitFor(async () => expect((await system.changeOf(answer)).state).toBe('failed'), 20_000);
        expect(fake.group.held(bob)).toEqual([trainee]);
      },
      { readLagMs: 50 },
    ),
  );

  test.concurrent(
    'does not make a revert take the new role before it gives the old ones back, even if the new role was given twice',
    onOpenCloud(
      async (system) => {
        const { fake } = system;
        fake.group.setMember(bob, [trainee, officer]);
        const body = JSON.stringify(membershipResource(fake.group, bob, [recruit, trainee, officer], 'withoutBase'));
        fake.faults.add({ operation: 'assign', kind: 'body', body });
        const last = Math.max(trainee, officer);
        fake.faults.add({ operation: 'unassign', kind: 'status 403', roleId: last, times: 2 });
        expect((await system.rank(bob, { newRankId: 1 })).status).toBe(403);
        expect(fake.group.held(bob)).toEqual([trainee, officer].sort((a, b) => a - b));
        const writes = fake.journal.writes(bob).map(({ operation, roleId }) => [operation, roleId]);
        expect(writes.slice(-2)).toEqual([
          ['assign', Math.min(trainee, officer)],
          ['unassign', recruit],
        ]);
        expect(writes.filter(([operation, roleId]) => operation === 'unassign' && roleId === recruit)).toHaveLength(1);
      },
      { deadlineMs: 5_000, readLagMs: 50 },
    ),
  );
});
