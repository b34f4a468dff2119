import { afterAll, beforeAll, expect, test } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import { extended } from '../../src/core/holds.ts';
import type { KeyRules } from '../../src/core/model.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import { codeOf, messageOf } from '../support/answers.ts';
import {
  type Answer,
  type ConfigOverrides,
  openTestApp,
  place,
  roles,
  send,
  type TestApp,
} from '../support/open-test-app.ts';

let app: TestApp;
let key: string;
const [ann, bob] = [1001, 1002];

beforeAll(async () => {
  app = await openTestApp();
  key = await app.createKey({ scopes: ['verify', 'rank', 'suspend'] });
});

afterAll(() => app.close());

function ask(operation: string, body: unknown, secret = key, headers = {}): Promise<Answer> {
  return app.post(`/v2/${operation}?placeid=${place}`, { key: secret, body, headers });
}

const statusAndCode = (answer: Answer) => [answer.status, codeOf(answer)];

test('a key with the scope suspend takes all roles and later gives exactly those back; in between, no game can rank the member', async () => {
  const before = await app.heldBy(ann);
  const suspended = await ask('suspend', { robloxUserId: ann, duration: '3d', reason: 'spam' });
  const inThreeDays = Math.floor(Date.now() / 1_000) + 3 * 86_400;
  expect(suspended.json).toMatchObject({
    ...{ success: true, robloxUserId: ann, oldRank: 10, newRank: 1, roleName: 'Member' },
    ...{ changeId: suspended.headers['x-rank-change'], suspensionId: expect.stringMatching(/^hold_/) },
  });
  expect(Math.abs((suspended.json as { until: number }).until - inThreeDays)).toBeLessThan(60);
  expect(await app.heldBy(ann)).toEqual([roles.base]);
  const member = await send(`${app.url}/v2/member?robloxUserId=${ann}&placeid=${place}`, { key });
  expect(member.json).toMatchObject({ suspendedUntil: (suspended.json as { until: number }).until });

  const refusedAnswers = [
    await app.rank(key, { rankeeId: ann }),
    await ask('promote', { robloxUserId: ann }),
    await app.rank(await app.createKey({ name: 'trial', mode: 'test' }), { rankeeId: ann }),
  ];
  for (const answer of refusedAnswers) {
    expect(statusAndCode(answer)).toEqual([403, 'member_suspended']);
    expect(messageOf(answer)).toMatch(/is suspended until \d{4}-\d\d-\d\d \d\d:\d\d UTC/);
  }
  expect(statusAndCode(await ask('suspend', { robloxUserId: ann, duration: 60 }))).toEqual([409, 'already_suspended']);

  const asked = { rankerId: 1003, rankerName: 'Builder', reason: 'appeal', command: ':unsuspend' };
  const lifted = await ask('unsuspend', { robloxUserId: ann, ...asked });
  expect(await app.store.findChange(String(lifted.headers['x-rank-change']))).toMatchObject(asked);
  expect(lifted.json).toMatchObject({
    success: true,
    robloxUserId: ann,
    newRank: 10,
    suspensionId: (suspended.json as { suspensionId: string }).suspensionId,
  });
  expect(await app.heldBy(ann)).toEqual(before);
  expect(statusAndCode(await ask('unsuspend', { robloxUserId: ann }))).toEqual([404, 'not_suspended']);
});

test('no key can end a suspension that the operator has extended', async () => {
  const { suspensionId } = (await ask('suspend', { robloxUserId: 1005, duration: '1h' })).json as {
    suspensionId: string;
  };
  const actor = { by: 'cli:ann@host', at: Date.now() };
  await app.store.updateHold(suspensionId, (hold) => extended(hold, actor.at + 86_400_000, actor));
  expect(statusAndCode(await ask('unsuspend', { robloxUserId: 1005 }))).toEqual([403, 'suspended_by_operator']);
});

test('if two keys suspend a member at the same time, one succeeds, and either may lift the suspension', async () => {
  const before = await app.heldBy(bob);
  const other = await app.createKey({ name: 'other', scopes: ['suspend'] });
  const body = { robloxUserId: bob, duration: '1h' };
  const both = await Promise.all([ask('suspend', body), ask('suspend', body, other)]);
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  expect(both.map(codeOf)).toContain('already_suspended');
  expect((await ask('unsuspend', { robloxUserId: bob }, other)).status).toBe(200);
  expect(await app.heldBy(bob)).toEqual(before);
});

test('a repeat with the same Idempotency-Key gets the first response again, even after the suspension has ended', async () => {
  const twice = async (operation: string, body: object) => {
    const headers = { 'idempotency-key': `try-${operation}` };
    const answers = [await ask(operation, body, key, headers), await ask(operation, body, key, headers)];
    const [first, second] = answers.map(({ json }) => ({ ...Object(json), requestId: '' }));
    expect(first).toMatchObject({ success: true });
    expect(second).toEqual(first);
    expect(answers.map((answer) => answer.headers['idempotent-replayed'])).toEqual([undefined, 'true']);
  };
  await twice('suspend', { robloxUserId: ann, duration: '1h' });
  await twice('unsuspend', { robloxUserId: ann });
  const other = await ask('unsuspend', { robloxUserId: bob }, key, { 'idempotency-key': 'try-unsuspend' });
  expect(statusAndCode(other)).toEqual([422, 'idempotency_mismatch']);
});

test('a key without the scope suspend can neither suspend a member nor end a suspension', async () => {
  const ranker = await app.createKey({ name: 'ranker' });
  for (const operation of ['suspend', 'unsuspend'])
    expect(statusAndCode(await ask(operation, { robloxUserId: ann, duration: '1h' }, ranker))).toEqual([
      403,
      'key_not_allowed',
    ]);
});

test('a test key gets the outcome of a real suspension, and changes nothing', async () => {
  const trial = await app.createKey({ name: 'rehearsal', mode: 'test', scopes: ['suspend'] });
  const before = await app.heldBy(bob);
  const answer = await ask('suspend', { robloxUserId: bob, duration: '1h' }, trial);
  expect(answer.json).toMatchObject({ success: true, suspensionId: null });
  expect(messageOf(answer)).toContain('Test key, nothing changed');
  expect(await app.heldBy(bob)).toEqual(before);
  await ask('suspend', { robloxUserId: bob, duration: '1h' });
  expect(messageOf(await ask('unsuspend', { robloxUserId: bob }, trial))).toContain('Test key, nothing changed');
  expect(await app.heldBy(bob)).toEqual([roles.base]);
  await ask('unsuspend', { robloxUserId: bob });
  expect(await app.heldBy(bob)).toEqual(before);
});

test.each([
  [{}, 'duration is missing'],
  [{ duration: '3' }, 'at least one minute'],
  [{ duration: 'soon' }, 'duration must be a duration such as 3d, 12h or 30m, or a number of whole seconds'],
  [{ duration: -60 }, 'at least one minute'],
  [{ duration: 1.5 }, 'duration must be a duration'],
  [{ duration: '800d' }, 'at most 365d'],
])('a suspension for %j is refused: %s', async (rest, problem) => {
  const answer = await ask('suspend', { robloxUserId: bob, ...rest });
  expect(statusAndCode(answer)).toEqual([400, 'invalid_request']);
  expect(messageOf(answer)).toContain(problem);
});

test('the circuit breaker counts a suspension as a demotion, even of a member without a role', async () => {
  await using other = await openTestApp({
    config: {
      policy: { breaker: { enabled: true, demotions: 2, highRank: undefined, highChanges: 5, windowMs: 600_000 } },
    },
  });
  const leaked = await other.createKey({ scopes: ['suspend'] });
  const suspend = (robloxUserId: number) =>
    other.post(`/v2/suspend?placeid=${place}`, { key: leaked, body: { robloxUserId, duration: '1h' } });
  expect([(await suspend(1001)).status, (await suspend(1004)).status]).toEqual([200, 200]);
  expect(statusAndCode(await suspend(1002))).toEqual([429, 'key_paused']);
  expect(await other.heldBy(1002)).toEqual([roles.officer, roles.base]);
});

const breaker = { enabled: true, demotions: 10, highRank: 50, highChanges: 1, windowMs: 600_000 };

/** Rules that allow the suspension itself, but not the roles that are restored at its end. */
const rulesAgainstRestoring: Record<
  string,
  { from?: number; rules?: KeyRules; policy?: ConfigOverrides['policy']; asked?: object; second?: true; answer: string }
> = {
  ceiling: { rules: { maxRank: 20 }, answer: 'rank_not_allowed' },
  floor: {
    ...{ from: 1, rules: { minRank: 10 }, policy: { suspension: { role: 10, maxMs: 86_400_000 } } },
    answer: 'rank_not_allowed',
  },
  'locked roles': { policy: { lockedRoles: [50] }, answer: 'rank_not_allowed' },
  'privileged roles': { policy: { privilegedRoles: [50] }, answer: 'rank_not_allowed' },
  direction: { rules: { direction: 'demote' }, answer: 'key_not_allowed' },
  'ranker rank': {
    ...{ policy: { rankerCheck: 'verify' }, asked: { rankerId: bob, rankerName: 'Bob' } },
    answer: 'ranker_not_allowed',
  },
  breaker: { policy: { breaker }, second: true, answer: 'key_paused' },
};

test.each(Object.entries(rulesAgainstRestoring))(
  'a suspension that ends a temporary rank must pass the rules for a promotion to the previous roles: %s',
  async (_, { from = 50, rules = {}, policy = {}, asked, second, answer }) => {
    await using other = await openTestApp();
    const give = async (rankeeId: number, newRankId: number, forMs?: number) => {
      using deadline = deadlineIn(other.app.clock, 5_000);
      const request = { rankeeId, rankeeName: '', rankerId: 0, rankerName: '', newRankId };
      const hold = forMs && ({ kind: 'temporary', endsAt: Date.now() + forMs } as const);
      const caller = { by: 'cli:ann@host', dryRun: false };
      expect((await changeRank(other.app, { caller, request, ...(hold && { hold }) }, deadline)).error).toBeUndefined();
    };
    for (const member of [ann, 1005]) {
      await give(member, from);
      await give(member, from === 1 ? 20 : 10, 3_600_000);
    }
    await other.stop();
    await using withRules = await openTestApp({ dataDir: other.dataDir, config: { policy } });
    const secret = await withRules.createKey({ scopes: ['suspend'], rules });
    const suspend = (robloxUserId: number) =>
      withRules.post(`/v2/suspend?placeid=${place}`, { key: secret, body: { robloxUserId, duration: '1h', ...asked } });
    if (second) expect((await suspend(1005)).status).toBe(200);
    const held = await withRules.heldBy(ann);
    expect(codeOf(await suspend(ann))).toBe(answer);
    expect(await withRules.heldBy(ann)).toEqual(held);
  },
);
