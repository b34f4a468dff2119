import { describe, expect, test } from 'vitest';
import type { RankRequest, Role } from '../../src/core/model.ts';
import {
  type ActingAccount,
  type Policy,
  type PolicyCase,
  policyRules,
  refusalAboveActing,
  refusalOfUntouchable,
} from '../../src/core/policy.ts';
import { type RoleScheme, rolePlan } from '../../src/core/role-plan.ts';
import type { RankdError } from '../../src/errors.ts';

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
  test('lets a change up to and including it pass', () => {
    expect(refusal('ceiling', { to: 50, policy: { maxRank: 50 } })).toBeUndefined();
    expect(refusal('ceiling', { to: 50, keyMaxRank: 50 })).toBeUndefined();
  });

  test('of the policy refuses a role above it', () => {
    expect(refusal('ceiling', { to: 50, policy: { maxRank: 49 }, keyMaxRank: 100 })).toMatchObject({
      code: 'rank_not_allowed',
      message: 'Officer (rank 50) is above 49, the ceiling set by policy.max_rank.',
    });
  });

  test('of the key refuses a role above it, although the policy allows it', () => {
    expect(refusal('ceiling', { to: 50, keyMaxRank: 49 })).toMatchObject({
      code: 'rank_not_allowed',
      message: expect.stringContaining('49, the ceiling set by the max_rank of this key'),
      hint: expect.stringContaining('--max-rank'),
    });
  });

  test('protects from demotion who is above it', () => {
    expect(refusal('ceiling', { from: [100], to: 10, policy: { maxRank: 50 } })?.message).toContain(
      'General (rank 100)',
    );
  });

  test('has nothing against a higher role off the ladder, which stays', () => {
    const change = { from: [100, 10], to: 50, ladder: [10, 50], policy: { maxRank: 50 } };
    expect(refusal('ceiling', change)).toBeUndefined();
  });
});

describe('locked roles', () => {
  test.each([
    ['rank', 50],
    ['role id', 1_050],
  ])('named by %s are never given nor taken', (_, named) => {
    const policy = { lockedRoles: [named] };
    const refused = {
      code: 'rank_not_allowed',
      message: expect.stringMatching(/Officer \(rank 50\).*policy\.locked_roles/),
    };
    expect(refusal('locked roles', { to: 50, policy })).toMatchObject(refused);
    expect(refusal('locked roles', { from: [50], to: 10, policy })).toMatchObject(refused);
    expect(refusal('locked roles', { from: [50], to: 1, policy })).toMatchObject(refused);
  });

  test('are refused as a target where nothing needs giving: the base role, or a lower role that is held', () => {
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
  test('are refused by user id', () => {
    expect(refusal('protected members', { to: 50, policy: { protectedMembers: [rankeeId] } })).toMatchObject({
      code: 'member_protected',
      message: expect.stringContaining(`Member ${rankeeId} is on policy.protected_members`),
    });
  });

  test.each([
    ['rank', 10],
    ['role id', 1_010],
  ])('are refused by the %s of any role they hold', (_, named) => {
    expect(
      refusal('protected members', { from: [10, 50], to: 100, policy: { protectedRoles: [named] } }),
    ).toMatchObject({
      code: 'member_protected',
      message: expect.stringMatching(/holds Cadet \(rank 10\), one of policy\.protected_roles/),
    });
  });

  test('are not those who only come to hold a protected role, nor other members', () => {
    const policy = { protectedMembers: [rankeeId + 1], protectedRoles: [50] };
    expect(refusal('protected members', { from: [10], to: 50, policy })).toBeUndefined();
  });
});

describe('self-rank', () => {
  test('is refused where the policy denies it', () => {
    expect(refusal('self-rank', { to: 50, rankerId: rankeeId, policy: { selfRank: 'deny' } })).toMatchObject({
      code: 'ranker_not_allowed',
      message: expect.stringContaining('policy.self_rank'),
    });
  });

  test('passes where the policy allows it, and somebody else always does', () => {
    expect(refusal('self-rank', { to: 50, rankerId: rankeeId, policy: { selfRank: 'allow' } })).toBeUndefined();
    expect(refusal('self-rank', { to: 50, rankerId: 0, policy: { selfRank: 'deny' } })).toBeUndefined();
  });
});

describe('the cooldown', () => {
  const policy = { cooldownMs: 60_000 };

  test('refuses until it is over, and says when that is', () => {
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 59_001 })).toMatchObject({
      code: 'cooldown',
      retryAfterMs: 999,
      message: expect.stringContaining('1 second'),
    });
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 0 })?.retryAfterMs).toBe(60_000);
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 60_000 })).toBeUndefined();
  });

  test('never holds a member who was not ranked before, nor after the clock was set back', () => {
    expect(refusal('cooldown', { to: 50, policy })).toBeUndefined();
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: -1 })).toBeUndefined();
  });

  test('of zero is none', () => {
    expect(refusal('cooldown', { to: 50, policy: { cooldownMs: 0 }, sinceLastChangeMs: 0 })).toBeUndefined();
  });

  test('names the setting that decides', () => {
    expect(refusal('cooldown', { to: 50, policy, sinceLastChangeMs: 0 })?.message).toContain('policy.cooldown');
  });
});

test('an open policy refuses nothing', () => {
  for (const { name } of policyRules) expect(refusal(name, { from: [10, 50], to: 100 })).toBeUndefined();
});

test('the rules are answered in a fixed order, each with its code', () => {
  const everythingWrong = {
    to: 50,
    rankerId: rankeeId,
    sinceLastChangeMs: 0,
    policy: {
      maxRank: 1,
      lockedRoles: [50],
      protectedMembers: [rankeeId],
      selfRank: 'deny',
      cooldownMs: 1,
    } satisfies Partial<Policy>,
  };
  expect(policyRules.map(({ name }) => [name, refusal(name, everythingWrong)?.code])).toEqual([
    ['ceiling', 'rank_not_allowed'],
    ['locked roles', 'rank_not_allowed'],
    ['protected members', 'member_protected'],
    ['self-rank', 'ranker_not_allowed'],
    ['cooldown', 'cooldown'],
  ]);
});

describe('the owner and the acting account', () => {
  test('are never ranked', () => {
    expect(refusalOfUntouchable(900, acting)).toMatchObject({
      code: 'above_acting_account',
      message: expect.stringContaining('owns the group'),
    });
    expect(refusalOfUntouchable(500, acting)).toMatchObject({
      code: 'above_acting_account',
      message: expect.stringContaining('the account rankd acts with'),
    });
    expect(refusalOfUntouchable(900, { ...acting, userId: 900 })?.code).toBe('above_acting_account');
  });

  test('are nobody else, and nobody in a group without an owner or on a platform that does not say who acts', () => {
    expect(refusalOfUntouchable(rankeeId, acting)).toBeUndefined();
    expect(refusalOfUntouchable(rankeeId, { ...acting, ownerId: undefined })).toBeUndefined();
    expect(refusalOfUntouchable(500, undefined)).toBeUndefined();
  });
});

describe('the reach of the acting account', () => {
  test('is what is strictly below its rank', () => {
    expect(aboveActing({ from: [50], to: 100, actingRank: 101 })).toBeUndefined();
    expect(aboveActing({ from: [50], to: 100, actingRank: 100 })).toMatchObject({
      code: 'above_acting_account',
      message: 'General (rank 100) is not below rank 100 of the account rankd acts with (500).',
    });
    expect(aboveActing({ from: [100], to: 50, actingRank: 100 })).toMatchObject({
      code: 'above_acting_account',
      message: expect.stringContaining(`Member ${rankeeId} holds General (rank 100), not below rank 100`),
    });
  });

  test('counts a higher role off the ladder, although it would stay', () => {
    expect(aboveActing({ from: [100], to: 50, ladder: [10, 50], actingRank: 100 })?.code).toBe('above_acting_account');
  });

  test("is everything where it is the owner, and the platform's to say where nobody knows who acts", () => {
    expect(
      refusalAboveActing({ ...policyCase({ from: [100], to: 50 }), acting: { userId: 900, ownerId: 900, rank: 1 } }),
    ).toBeUndefined();
    expect(refusalAboveActing({ ...policyCase({ from: [100], to: 50 }), acting: undefined })).toBeUndefined();
  });
});

interface Change {
  /** Ranks of the roles held, besides the base role. */
  from?: number[];
  to: number;
  ladder?: number[];
  policy?: Partial<Policy>;
  keyMaxRank?: number;
  rankerId?: number;
  sinceLastChangeMs?: number;
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
  keyMaxRank,
  rankerId = 0,
  sinceLastChangeMs,
}: Change): PolicyCase {
  const scheme: RoleScheme = { roles, ladder: ladder?.map(roleOf) };
  const request: RankRequest = { rankeeId, rankeeName: 'Ada', rankerId, rankerName: 'Grace', newRankId: to };
  const member = { userId: rankeeId, roleIds: from.map((rank) => roleOf(rank).id) };
  return {
    policy: {
      maxRank: 254,
      lockedRoles: [],
      protectedMembers: [],
      protectedRoles: [],
      selfRank: 'allow',
      cooldownMs: 0,
      ...policy,
    },
    keyMaxRank,
    request,
    scheme,
    plan: rolePlan(scheme, member, roleOf(to)),
    acting,
    sinceLastChangeMs,
  };
}

function roleOf(rank: number): Role {
  const role = roles.find((candidate) => candidate.rank === rank);
  if (role === undefined) throw new Error(`no role of rank ${rank}`);
  return role;
}
