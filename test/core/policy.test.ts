import { describe, expect, test } from 'vitest';
import type { RankdError } from '../../src/base/errors.ts';
import { refusalAboveActing, refusalOfUntouchable } from '../../src/core/acting-account.ts';
import type { ActingAccount, Direction, KeyRules, RankRequest, Role } from '../../src/core/model.ts';
import { policyRules } from '../../src/core/policy.ts';
import { rolePlan } from '../../src/core/role-plan.ts';
import type { RoleScheme } from '../../src/core/role-scheme.ts';
import { mustVerifyRanker, refusalOfRanker } from '../../src/core/rules/rankers.ts';
import type { Policy, PolicyCase } from '../../src/core/rules/rule.ts';
import { openPolicy } from '../support/arbitrary-group.ts';

const roles: Role[] = [
  { id: 1_000, name: 'Guest', rank: 0, kind: 'guest' },
  { id: 1_001, name: 'Member', rank: 1, kind: 'base' },
  { id: 1_010, name: 'Cadet', rank: 10, kind: 'custom' },
  { id: 1_050, name: 'Officer', rank: 50, kind: 'custom' },
  { id: 1_100, name: 'General', rank: 100, kind: 'custom' },
  { id: 1_255, name: 'Owner', rank: 255, kind: 'owner' },
];
const rankeeId = 7;
const acting: ActingAccount = { userId: 500, ownerId: 900, rank: 200 };

describe('the ceiling', () => {
  test('allows changes up to and including it', () => {
    expect(refusal('ceiling', { to: 50, policy: { maxRank: 50 } })).toBeUndefined();
    expect(refusal('ceiling', { to: 50, key: { maxRank: 50 } })).toBeUndefined();
  });

  test('of the policy refuses a role above it', () => {
    expect(refusal('ceiling', { to: 50, policy: { maxRank: 49 }, key: { maxRank: 100 } })).toMatchObject({
      code: 'rank_not_allowed',
      message: 'Officer (rank 50) is above 49, the ceiling set by policy.max_rank.',
    });
  });

  test('of the key refuses a role above it, although the policy allows it', () => {
    expect(refusal('ceiling', { to: 50, key: { maxRank: 49 } })).toMatchObject({
      code: 'rank_not_allowed',
      message: expect.stringContaining('49, the ceiling set by the max_rank of this key'),
      hint: expect.stringContaining('--max-rank'),
    });
  });

  test('protects members above it from demotion', () => {
    expect(refusal('ceiling', { from: [100], to: 10, policy: { maxRank: 50 } })?.message).toContain(
      'General (rank 100)',
    );
  });

  test('ignores a higher role off the ladder, which the change does not touch', () => {
    const change = { from: [100, 10], to: 50, ladder: [10, 50], policy: { maxRank: 50 } };
    expect(refusal('ceiling', change)).toBeUndefined();
  });
});

describe('the floor', () => {
  test('allows changes from it and to it', () => {
    expect(refusal('floor', { from: [50], to: 10, policy: { minRank: 10 } })).toBeUndefined();
    expect(refusal('floor', { from: [10], to: 50, key: { minRank: 10 } })).toBeUndefined();
  });

  test('of the policy refuses a role below it, the base role included', () => {
    expect(refusal('floor', { from: [50], to: 10, policy: { minRank: 11 }, key: { minRank: 5 } })).toMatchObject({
      code: 'rank_not_allowed',
      message: 'Cadet (rank 10) is below 11, the floor set by policy.min_rank.',
    });
    expect(refusal('floor', { from: [50], to: 1, policy: { minRank: 2 } })?.message).toContain('Member (rank 1)');
  });

  test('of the key refuses a role below it, although the policy allows it', () => {
    expect(refusal('floor', { from: [50], to: 10, key: { minRank: 11 } })).toMatchObject({
      message: expect.stringContaining('11, the floor set by the min_rank of this key'),
      hint: expect.stringContaining('--min-rank'),
    });
  });

  test('refuses to rank members below it', () => {
    expect(refusal('floor', { from: [10], to: 50, policy: { minRank: 20 } })?.message).toContain('Cadet (rank 10)');
    expect(refusal('floor', { to: 50, policy: { minRank: 20 } })).toMatchObject({
      code: 'rank_not_allowed',
      message: `Member ${rankeeId} has rank 1, below 20, the floor set by policy.min_rank.`,
    });
  });

  test('ignores a lower role that the change does not touch', () => {
    expect(refusal('floor', { from: [10, 50], to: 100, policy: { minRank: 50 } })).toBeUndefined();
  });
});

describe('the direction of a key', () => {
  test.each<[Direction, Change, Change]>([
    ['promote', { from: [10], to: 50 }, { from: [50], to: 10 }],
    ['demote', { from: [50], to: 1 }, { to: 10 }],
  ])('if set to %s, allows only such changes', (direction, right, wrong) => {
    const key = { direction };
    expect(refusal('direction', { ...right, key })).toBeUndefined();
    expect(refusal('direction', { ...wrong, key })).toMatchObject({
      code: 'key_not_allowed',
      message: `This key may only ${direction} members: its direction is ${direction}.`,
      hint: expect.stringContaining('--direction'),
    });
  });

  test('if set, also forbids moves between roles of the same rank', () => {
    const sideways = { from: [10, 50], to: 50, ladder: [10, 50] };
    expect(refusal('direction', { ...sideways, key: { direction: 'promote' } })?.code).toBe('key_not_allowed');
    expect(refusal('direction', { ...sideways, key: {} })).toBeUndefined();
  });
});

describe('steps', () => {
  const policy = { steps: 'adjacent' } as const;

  test('may skip ranks unless the policy forbids it', () => {
    expect(refusal('steps', { to: 100 })).toBeUndefined();
  });

  test('that must be adjacent go only to the next rank up or down, with the base role at the bottom', () => {
    expect(refusal('steps', { to: 10, policy })).toBeUndefined();
    expect(refusal('steps', { from: [10], to: 1, policy })).toBeUndefined();
    expect(refusal('steps', { from: [100], to: 50, policy })).toBeUndefined();
    expect(refusal('steps', { from: [10], to: 100, policy })).toMatchObject({
      code: 'rank_not_allowed',
      message: 'A change from rank 10 to General (rank 100) would skip Officer (rank 50): policy.steps is adjacent.',
    });
    expect(refusal('steps', { from: [50], to: 1, policy })?.message).toContain('Cadet');
  });

  test('follow the ladder, if there is one', () => {
    expect(refusal('steps', { from: [10], to: 100, ladder: [10, 100], policy })).toBeUndefined();
    expect(refusal('steps', { to: 100, ladder: [10, 100], policy })?.message).toContain('Cadet');
  });

  test('skip a locked role, which no member can reach', () => {
    expect(refusal('steps', { from: [10], to: 100, policy: { ...policy, lockedRoles: [50] } })).toBeUndefined();
  });
});

describe('locked roles', () => {
  test.each([
    ['rank', 50],
    ['role id', 1_050],
  ])('named by %s are never given or taken', (_, named) => {
    const policy = { lockedRoles: [named] };
    const refused = {
      code: 'rank_not_allowed',
      message: expect.stringMatching(/Officer \(rank 50\).*policy\.locked_roles/),
    };
    expect(refusal('locked roles', { to: 50, policy })).toMatchObject(refused);
    expect(refusal('locked roles', { from: [50], to: 10, policy })).toMatchObject(refused);
    expect(refusal('locked roles', { from: [50], to: 1, policy })).toMatchObject(refused);
  });

  test('are refused as a target even if no role would be given: the base role, or a lower role already held', () => {
    expect(refusal('locked roles', { from: [50], to: 1, policy: { lockedRoles: [1] } })?.message).toContain('Member');
    expect(refusal('locked roles', { from: [50, 100], to: 50, policy: { lockedRoles: [50] } })?.message).toContain(
      'Officer',
    );
  });

  test('may be held while other roles change', () => {
    expect(refusal('locked roles', { from: [10, 50], to: 100, policy: { lockedRoles: [10] } })).toBeUndefined();
  });
});

describe('protected members', () => {
  test('listed by user id are never ranked', () => {
    expect(refusal('protected members', { to: 50, policy: { protectedMembers: [rankeeId] } })).toMatchObject({
      code: 'member_protected',
      message: expect.stringContaining(`Member ${rankeeId} is listed in policy.protected_members`),
    });
  });

  test.each([
    ['rank', 10],
    ['role id', 1_010],
  ])('listed by the %s of any role they hold are never ranked', (_, named) => {
    expect(
      refusal('protected members', { from: [10, 50], to: 100, policy: { protectedRoles: [named] } }),
    ).toMatchObject({
      code: 'member_protected',
      message: expect.stringMatching(/holds Cadet \(rank 10\), one of policy\.protected_roles/),
    });
  });

  test('do not include members who are not listed, or who would only gain a protected role', () => {
    const policy = { protectedMembers: [rankeeId + 1], protectedRoles: [50] };
    expect(refusal('protected members', { from: [10], to: 50, policy })).toBeUndefined();
  });
});

describe('self-rank', () => {
  test('is refused if the policy denies it', () => {
    expect(refusal('self-rank', { to: 50, rankerId: rankeeId, policy: { selfRank: 'deny' } })).toMatchObject({
      code: 'ranker_not_allowed',
      message: expect.stringContaining('policy.self_rank'),
    });
  });

  test('is allowed if the policy allows it, and the rule never applies to another player', () => {
    expect(refusal('self-rank', { to: 50, rankerId: rankeeId, policy: { selfRank: 'allow' } })).toBeUndefined();
    expect(refusal('self-rank', { to: 50, rankerId: 0, policy: { selfRank: 'deny' } })).toBeUndefined();
  });
});

test('self-rank is refused with a key that denies it, although the policy allows it', () => {
  expect(refusal('self-rank', { to: 50, rankerId: rankeeId, key: { selfRank: 'deny' } })).toMatchObject({
    code: 'ranker_not_allowed',
    message: expect.stringContaining('its self_rank is deny'),
    hint: expect.stringContaining('--self-rank'),
  });
  expect(refusal('self-rank', { to: 50, rankerId: 9, key: { selfRank: 'deny' } })).toBeUndefined();
});

describe('the ranker check', () => {
  const rankerId = 9;
  const policy = (rankerCheck: Policy['rankerCheck'], rest: Partial<Policy> = {}) => ({ rankerCheck, ...rest });
  const asked = (change: Partial<Change>) => ({ to: 10, key: {}, policy: policy('verify'), ...change });

  test.each(['claimed', 'verify'] as const)('%s requires a ranker who is not the rankee', (check) => {
    const change = { to: 10, key: {}, policy: policy(check) };
    expect(refusal('ranker', { ...change, rankerId })).toBeUndefined();
    for (const nobody of [0, rankeeId]) {
      expect(refusal('ranker', { ...change, rankerId: nobody })).toMatchObject({
        code: 'ranker_not_allowed',
        message: expect.stringContaining(`policy.ranker_check is ${check}`),
        hint: expect.stringContaining('rankd key set KEY --system'),
      });
    }
  });

  test('is off by default', () => {
    expect(refusal('ranker', { to: 10, key: {}, rankerId: 0 })).toBeUndefined();
    expect(mustVerifyRanker(policyCase({ to: 10, key: {}, rankerId }))).toBe(false);
    expect(mustVerifyRanker(policyCase(asked({ policy: policy('claimed'), rankerId })))).toBe(false);
  });

  test('allows a system key to rank without a ranker or on behalf of the rankee, and applies to its other changes', () => {
    const key = { isSystem: true };
    for (const itself of [0, rankeeId]) {
      expect(refusal('ranker', asked({ key, rankerId: itself }))).toBeUndefined();
      expect(mustVerifyRanker(policyCase(asked({ key, rankerId: itself })))).toBe(false);
    }
    expect(mustVerifyRanker(policyCase(asked({ key, rankerId })))).toBe(true);
  });

  test('allows the operator to rank without a ranker, and applies if one is named', () => {
    const { key: _, ...operator } = asked({});
    expect(refusal('ranker', { ...operator, rankerId: 0 })).toBeUndefined();
    expect(mustVerifyRanker(policyCase({ ...operator, rankerId: 0 }))).toBe(false);
    expect(refusal('ranker', { ...operator, rankerId: rankeeId })?.code).toBe('ranker_not_allowed');
    expect(mustVerifyRanker(policyCase({ ...operator, rankerId }))).toBe(true);
  });

  const verdict = (ranks: number[] | undefined, change: Partial<Change> = {}) =>
    refusalOfRanker(policyCase(asked({ rankerId, ...change })), ranks?.map(roleOf));

  test('verify requires the ranker to be a member', () => {
    expect(verdict(undefined)).toMatchObject({
      code: 'ranker_not_allowed',
      message: 'Ranker 9 is not a member of the group: policy.ranker_check is verify.',
    });
  });

  test('verify requires the ranker to be above the new rank and the old one', () => {
    expect(verdict([1, 50], { from: [1], to: 10 })).toBeUndefined();
    expect(verdict([1, 50], { to: 50 })?.message).toBe(
      'Ranker 9 has rank 50, which is not above Officer (rank 50): policy.ranker_check is verify.',
    );
    expect(verdict([1, 50], { from: [50], to: 10 })?.message).toContain('member 7, who holds Officer (rank 50)');
    expect(verdict([1, 50], { from: [100], to: 10 })?.message).toContain('General (rank 100)');
  });

  test('verify counts all roles of the rankee, even those off the ladder', () => {
    expect(verdict([1, 50], { from: [100], to: 10, ladder: [10, 50] })?.code).toBe('ranker_not_allowed');
    expect(verdict([1, 100], { from: [50], to: 10, ladder: [10, 50] })).toBeUndefined();
  });

  test("verify requires the ranker to have the policy's minimum rank", () => {
    const least = policy('verify', { minRankerRank: 60 });
    expect(verdict([1, 50], { policy: least })?.message).toBe(
      'Ranker 9 has rank 50, below 60, the minimum set by policy.min_ranker_rank.',
    );
    expect(verdict([1, 100], { policy: least })).toBeUndefined();
    const exactly = policy('verify', { minRankerRank: 50 });
    expect(verdict([1, 50], { from: [1], to: 10, policy: exactly })).toBeUndefined();
  });

  test("verify lets the group's owner give every role, whatever rank the platform reports", () => {
    expect(verdict([1], { to: 100, rankerId: 900 })).toBeUndefined();
  });
});

test("a ranker's cooldown refuses changes until it ends, and never delays a change without a ranker", () => {
  const change = { to: 50, rankerId: 9, policy: { rankerCooldownMs: 60_000 } };
  expect(refusal('ranker cooldown', { ...change, sinceRankersLastChangeMs: 59_001 })).toMatchObject({
    code: 'cooldown',
    retryAfterMs: 999,
    message: expect.stringContaining('policy.ranker_cooldown'),
  });
  expect(refusal('ranker cooldown', { ...change, sinceRankersLastChangeMs: 60_000 })).toBeUndefined();
  expect(refusal('ranker cooldown', { ...change, sinceRankersLastChangeMs: -1 })).toBeUndefined();
  expect(refusal('ranker cooldown', change)).toBeUndefined();
  expect(refusal('ranker cooldown', { ...change, rankerId: 0, sinceRankersLastChangeMs: 0 })).toBeUndefined();
});

describe('the cooldown', () => {
  const policy = { cooldowns: [{ from: 0, forMs: 60_000 }] };

  test('refuses changes until it ends, and reports the remaining time', () => {
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 59_001 })).toMatchObject({
      code: 'cooldown',
      retryAfterMs: 999,
      message: expect.stringContaining('1 second'),
    });
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 0 })?.retryAfterMs).toBe(60_000);
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 60_000 })).toBeUndefined();
  });

  test('does not apply to a member who was never ranked, or after the clock was set back', () => {
    expect(refusal('cooldown', { to: 50, policy })).toBeUndefined();
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: -1 })).toBeUndefined();
  });

  test("can depend on the member's previous rank, and the refusal gives it in hours or days", () => {
    const hourMs = 3_600_000;
    const byRank = {
      cooldowns: [
        { from: 50, forMs: 168 * hourMs },
        { from: 10, forMs: 24 * hourMs },
      ],
    };
    const waited = (from: number[], hours: number) =>
      refusal('cooldown', { from, to: 100, policy: byRank, sinceLastChangeMs: hours * hourMs });
    expect(waited([], 0)).toBeUndefined();
    expect(waited([10], 11.5)).toMatchObject({
      message: `Member ${rankeeId} was ranked less than 24 hours ago (policy.cooldown); try again in 13 hours.`,
      retryAfterMs: 12.5 * hourMs,
      hint: expect.stringContaining('rankd history undo'),
    });
    expect(waited([10, 50], 24)?.message).toMatch(/less than 7 days ago .* in 6 days\.$/);
  });

  test('of zero refuses nothing', () => {
    expect(refusal('cooldown', { to: 50, policy: { cooldowns: [] }, sinceLastChangeMs: 0 })).toBeUndefined();
  });

  test('is reported with the name of its setting', () => {
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 0 })?.message).toContain('policy.cooldown');
  });
});

test('an open policy refuses nothing', () => {
  for (const { name } of policyRules) expect(refusal(name, { from: [10, 50], to: 100 })).toBeUndefined();
});

test('the rules are checked in a fixed order, each with its code', () => {
  const everythingWrong = {
    to: 50,
    rankerId: rankeeId,
    sinceLastChangeMs: 0,
    sinceRankersLastChangeMs: 0,
    key: { direction: 'demote', minRank: 60 } as const,
    policy: {
      maxRank: 1,
      lockedRoles: [50],
      privilegedRoles: [50],
      protectedMembers: [rankeeId],
      steps: 'adjacent',
      reason: 'required',
      selfRank: 'deny',
      rankerCheck: 'verify',
      cooldowns: [{ from: 0, forMs: 1 }],
      rankerCooldownMs: 1,
    } satisfies Partial<Policy>,
  };
  expect(policyRules.map(({ name }) => [name, refusal(name, everythingWrong)?.code])).toEqual([
    ['ceiling', 'rank_not_allowed'],
    ['floor', 'rank_not_allowed'],
    ['locked roles', 'rank_not_allowed'],
    ['privileged roles', 'rank_not_allowed'],
    ['protected members', 'member_protected'],
    ['direction', 'key_not_allowed'],
    ['steps', 'rank_not_allowed'],
    ['reason', 'reason_required'],
    ['self-rank', 'ranker_not_allowed'],
    ['ranker', 'ranker_not_allowed'],
    ['cooldown', 'cooldown'],
    ['ranker cooldown', 'cooldown'],
  ]);
});

describe('the owner and the acting account', () => {
  test('are never ranked', () => {
    expect(refusalOfUntouchable(900, acting)).toMatchObject({
      code: 'above_acting_account',
      message: expect.stringContaining('owns the group'),
      hint: expect.stringContaining('choose a different member'),
    });
    expect(refusalOfUntouchable(500, acting)).toMatchObject({
      code: 'above_acting_account',
      message: expect.stringContaining('is the acting account'),
    });
    expect(refusalOfUntouchable(900, { ...acting, userId: 900 })?.code).toBe('above_acting_account');
  });

  test('never prevent changes to other members, and may be unknown', () => {
    expect(refusalOfUntouchable(rankeeId, acting)).toBeUndefined();
    expect(refusalOfUntouchable(rankeeId, { ...acting, ownerId: undefined })).toBeUndefined();
    expect(refusalOfUntouchable(500, undefined)).toBeUndefined();
  });
});

describe('the reach of the acting account', () => {
  test('is every role strictly below its rank', () => {
    expect(aboveActing({ from: [50], to: 100, actingRank: 101 })).toBeUndefined();
    expect(aboveActing({ from: [50], to: 100, actingRank: 100 })).toMatchObject({
      code: 'above_acting_account',
      message: "General (rank 100) is not below the acting account's rank 100 (user 500).",
    });
    expect(aboveActing({ from: [100], to: 50, actingRank: 100 })).toMatchObject({
      code: 'above_acting_account',
      message: expect.stringContaining(
        `Member ${rankeeId} holds General (rank 100), which is not below the acting account's rank 100`,
      ),
    });
  });

  test('excludes a member with a higher role off the ladder, although the change does not touch that role', () => {
    expect(aboveActing({ from: [100], to: 50, ladder: [10, 50], actingRank: 100 })?.code).toBe('above_acting_account');
  });

  test('is every role for the owner, and is left to the platform if the account is unknown', () => {
    expect(
      refusalAboveActing({ ...policyCase({ from: [100], to: 50 }), acting: { userId: 900, ownerId: 900, rank: 1 } }),
    ).toBeUndefined();
    expect(refusalAboveActing({ ...policyCase({ from: [100], to: 50 }), acting: undefined })).toBeUndefined();
  });
});

interface Change {
  /** The ranks of the member's roles, except the base role. */
  from?: number[];
  to: number;
  ladder?: number[];
  policy?: Partial<Policy>;
  key?: KeyRules;
  rankerId?: number;
  sinceLastChangeMs?: number;
  sinceRankersLastChangeMs?: number;
}

function refusal(rule: string, change: Change): RankdError | undefined {
  const found = policyRules.find(({ name }) => name === rule);
  if (found === undefined) throw new Error(`no rule ${rule}`);
  return found.refusal(policyCase(change));
}

function aboveActing({ actingRank, ...change }: Change & { actingRank: number }): RankdError | undefined {
  return refusalAboveActing({ ...policyCase(change), acting: { ...acting, rank: actingRank } });
}

function policyCase({
  from = [],
  to,
  ladder,
  policy,
  key,
  rankerId = 0,
  sinceLastChangeMs,
  sinceRankersLastChangeMs,
}: Change): PolicyCase {
  const scheme: RoleScheme = { roles, ladder: ladder?.map(roleOf), rankOne: 'custom' };
  const request: RankRequest = { rankeeId, rankeeName: 'Ada', rankerId, rankerName: 'Grace', newRankId: to };
  const member = { userId: rankeeId, roleIds: from.map((rank) => roleOf(rank).id) };
  return {
    policy: { ...openPolicy, ...policy },
    key,
    request,
    scheme,
    plan: rolePlan(scheme, member, roleOf(to)),
    acting,
    sinceLastChangeMs,
    sinceRankersLastChangeMs,
  };
}

function roleOf(rank: number): Role {
  const role = roles.find((candidate) => candidate.rank === rank);
  if (role === undefined) throw new Error(`no role of rank ${rank}`);
  return role;
}
