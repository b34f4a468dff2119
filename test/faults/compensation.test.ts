import { expect, test, vi } from 'vitest';
import { codeOf } from '../support/answers.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

const { base, trainee, officer } = sampleRoles;
const bob = sampleUsers.trainee;
const always = Number.POSITIVE_INFINITY;
/** For tests in which a request to Roblox keeps failing until the deadline. */
const soon = { deadlineMs: 1_500 };

vi.setConfig({ maxConcurrency: 12 });

/** Makes Roblox refuse to remove the old role, and then fail to remove the new one. */
function failRevert({ fake }: OpenCloudApp, kind: 'reset' | 'status 503' | 'hang'): void {
  fake.faults.add({ operation: 'unassign', roleId: trainee, kind: 'status 403', times: 2 });
  fake.faults.add({ operation: 'unassign', roleId: officer, kind, times: always });
}

test.concurrent(
  'a refused second write reverts the first, and the refusal is reported and recorded',
  onOpenCloud(async (system) => {
    const { fake } = system;
    fake.faults.add({ operation: 'unassign', roleId: trainee, kind: 'status 403', times: 2 });
    const answer = await system.rank(bob);
    expect([answer.status, codeOf(answer)]).toEqual([403, 'above_acting_account']);
    expect(fake.group.held(bob)).toEqual([trainee]);
    expect(fake.journal.writes(bob).map(({ operation, roleId }) => [operation, roleId])).toEqual([
      ['assign', officer],
      ['unassign', trainee],
      ['unassign', trainee],
      ['assign', trainee], // needed because the refused write may still have removed the role
      ['unassign', officer],
    ]);
    const { rolesBefore, rolesAfter, ...change } = await system.changeOf(answer);
    expect(change).toMatchObject({ state: 'refused', code: 'above_acting_account', phase: 'compensate' });
    expect(rolesAfter).toEqual(rolesBefore);
  }),
);

test.concurrent.each(['reset', 'status 503', 'hang'] as const)(
  'a compensation that meets %s has an unknown outcome until it is reconciled to the refusal',
  (kind) =>
    onOpenCloud(async (system) => {
      const { fake } = system;
      failRevert(system, kind);
      const options = { idempotencyKey: 'one' };
      const first = await system.rank(bob, options);
      expect([first.status, codeOf(first)]).toEqual([504, 'outcome_unknown']);
      expect(await system.changeOf(first)).toMatchObject({ state: 'unknown', phase: 'compensate' });
      expect(fake.group.held(bob)).toEqual([officer, trainee]);

      const repeat = await system.rank(bob, options);
      expect([repeat.status, codeOf(repeat), repeat.headers['idempotent-replayed']]).toEqual([
        504,
        'outcome_unknown',
        'true',
      ]);
      fake.faults.clear();
      await system.recover();
      expect(fake.group.held(bob)).toEqual([trainee]);
      expect(await system.changeOf(first)).toMatchObject({
        state: 'refused',
        code: 'above_acting_account',
        rolesAfter: [base, trainee].sort((a, b) => a - b),
      });
      const reconciled = await system.rank(bob, options);
      expect([reconciled.status, codeOf(reconciled), reconciled.headers['idempotent-replayed']]).toEqual([
        403,
        'above_acting_account',
        'true',
      ]);
    }, soon)(),
);

test.concurrent(
  'an open compensation is reconciled before the next change to the member begins',
  onOpenCloud(async (system) => {
    const { fake } = system;
    failRevert(system, 'reset');
    const first = await system.rank(bob);
    expect(first.status).toBe(504);
    fake.faults.clear();
    const next = await system.rank(bob, { newRankId: 50 });
    expect(next.status, next.text).toBe(200);
    expect(fake.group.held(bob)).toEqual([sampleRoles.captain]);
    expect((await system.changeOf(first)).state).toBe('refused');
  }, soon),
);

test.concurrent(
  'while an open compensation cannot be reconciled, the next change to the member is refused and writes nothing',
  onOpenCloud(async (system) => {
    const { fake } = system;
    failRevert(system, 'reset');
    expect((await system.rank(bob)).status).toBe(504);
    const next = await system.rank(bob, { newRankId: 50 });
    expect([next.status, codeOf(next)]).toEqual([503, 'platform_unavailable']);
    expect(fake.journal.writes(bob).filter(({ roleId }) => roleId === sampleRoles.captain)).toEqual([]);
  }, soon),
);

test.concurrent(
  'reads from before the first write do not confirm a compensation',
  onOpenCloud(async (system) => {
    const { fake } = system;
    fake.lagMs = 650;
    fake.faults.add({ operation: 'unassign', kind: 'status 429', headers: { 'retry-after': '30' } });
    const answer = await system.rank(bob);
    expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
    system.clock.skip(31_000);
    await system.recover();
    expect(fake.group.held(bob)).toEqual([trainee]);
    expect(await system.changeOf(answer)).toMatchObject({ state: 'failed', code: 'platform_busy' });
  }),
);

test.concurrent(
  'reads from before the first write do not confirm a compensating write whose response is lost',
  onOpenCloud(
    async (system) => {
      const { fake } = system;
      fake.faults.add({ operation: 'unassign', roleId: trainee, kind: 'status 403', times: 2 });
      fake.faults.add({ operation: 'unassign', roleId: officer, kind: 'reset', times: always });
      const answer = await system.rank(bob);
      expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
    },
    { ...soon, fake: { lagMs: 3_000 }, readLagMs: 3_000 },
  ),
);

test.concurrent(
  'an unknown outcome is reconciled even if the request deadline is short',
  onOpenCloud(
    async (system) => {
      system.fake.faults.add({ operation: 'assign', kind: 'status 503', times: always });
      const answer = await system.rank(bob);
      expect(codeOf(answer)).toBe('outcome_unknown');
      system.fake.faults.clear();
      await system.recover();
      expect((await system.changeOf(answer)).state).toBe('failed');
    },
    { deadlineMs: 700, readLagMs: 1_000 },
  ),
);
