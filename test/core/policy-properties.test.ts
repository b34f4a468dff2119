import fc from 'fast-check';
import { expect, test } from 'vitest';
import { directions, type KeyRules } from '../../src/core/model.ts';
import { policyRules } from '../../src/core/policy.ts';
import { rise, rolePlan } from '../../src/core/role-plan.ts';
import { givableRoles, heightOf, heldRoles } from '../../src/core/role-scheme.ts';
import { direction, steps } from '../../src/core/rules/moves.ts';
import { refusalOfRanker } from '../../src/core/rules/rankers.ts';
import { ceiling, floor } from '../../src/core/rules/ranks.ts';
import { isNamed, type Policy, type PolicyCase, type PolicyRule } from '../../src/core/rules/rule.ts';
import { neighbor } from '../../src/core/target.ts';
import { arbitraryRankCase, customsOf, openPolicy, type RankCase } from '../support/arbitrary-group.ts';

const rank = fc.integer({ min: 1, max: 254 });

const policies: fc.Arbitrary<Policy> = fc
  .record({
    minRank: fc.oneof(fc.constant(1), rank),
    maxRank: fc.oneof(fc.constant(254), rank),
    lockedRoles: fc.array(rank, { maxLength: 3 }),
    protectedRoles: fc.array(rank, { maxLength: 2 }),
    steps: fc.constantFrom<Policy['steps'][]>('any', 'adjacent'),
    selfRank: fc.constantFrom<Policy['selfRank'][]>('allow', 'deny'),
    rankerCheck: fc.constantFrom<Policy['rankerCheck'][]>('off', 'claimed', 'verify'),
    minRankerRank: rank,
    reason: fc.constantFrom<Policy['reason'][]>('optional', 'required'),
    cooldowns: fc.constantFrom([], [{ from: 0, forMs: 60_000 }]),
    rankerCooldownMs: fc.constantFrom(0, 60_000),
  })
  .map((drawn) => ({ ...openPolicy, ...drawn }));

const rules: fc.Arbitrary<KeyRules> = fc.record(
  { minRank: rank, maxRank: rank, direction: fc.constantFrom(...directions), selfRank: fc.constant('deny') },
  { requiredKeys: [] },
);

const groups = fc.boolean().chain((ladder) => arbitraryRankCase({ ladder }));

/** The ranker is the member, another player, or absent. */
const cases: fc.Arbitrary<PolicyCase> = fc
  .record({ group: groups, policy: policies, key: rules, ranker: fc.constantFrom('rankee', 'other', 'nobody') })
  .map(({ group, policy, key, ranker }) => {
    const rankerId = { rankee: group.member.userId, other: 9, nobody: 0 }[ranker];
    return { ...caseOf(group), policy, key, request: { ...caseOf(group).request, rankerId } };
  });

const passes = (rule: PolicyRule, policyCase: PolicyCase) => rule.refusal(policyCase) === undefined;

test('no key allows a change that the policy refuses, except that a system key needs no ranker', () => {
  fc.assert(
    fc.property(cases, (policyCase) => {
      for (const rule of policyRules)
        if (!passes(rule, { ...policyCase, key: {} })) expect(passes(rule, policyCase)).toBe(false);
      for (const rule of policyRules.filter(({ name }) => name !== 'ranker')) {
        const asSystem = { ...policyCase, key: { ...policyCase.key, isSystem: true } };
        expect(passes(rule, asSystem)).toBe(passes(rule, policyCase));
      }
    }),
  );
});

test('a change that passes the ceilings and floors of the policy and the key involves only ranks between them', () => {
  fc.assert(
    fc.property(cases, (policyCase) => {
      fc.pre(passes(ceiling, policyCase) && passes(floor, policyCase));
      const lowest = Math.max(policyCase.policy.minRank, policyCase.key?.minRank ?? 0);
      const highest = Math.min(policyCase.policy.maxRank, policyCase.key?.maxRank ?? 255);
      const written = policyCase.scheme.roles.filter(({ id }) =>
        policyCase.plan.steps.some(({ roleId }) => roleId === id),
      );
      for (const role of [...written, policyCase.plan.target]) {
        expect(role.rank).toBeGreaterThanOrEqual(lowest);
        expect(role.rank).toBeLessThanOrEqual(highest);
      }
      expect(policyCase.plan.highestBefore?.rank).toBeGreaterThanOrEqual(lowest);
    }),
  );
});

test('with adjacent steps, a change passes if and only if every rank in between is locked', () => {
  fc.assert(
    fc.property(cases, (policyCase) => {
      const adjacent = { ...policyCase, policy: { ...policyCase.policy, steps: 'adjacent' as const } };
      const [low = 0, high = 0] = [heightOf(policyCase.plan.highestBefore), heightOf(policyCase.plan.target)].sort(
        (a, b) => a - b,
      );
      const between = givableRoles(policyCase.scheme).filter((role) => heightOf(role) > low && heightOf(role) < high);
      expect(passes(steps, adjacent)).toBe(between.every((role) => isNamed(role, policyCase.policy.lockedRoles)));
    }),
  );
});

test('the next rank up or down is always an adjacent step', () => {
  fc.assert(
    fc.property(groups, policies, fc.constantFrom('up', 'down'), (group, policy, way) => {
      const { plan, ...policyCase } = caseOf(group);
      const target = nextOf(group, heightOf(plan.highestBefore), way);
      fc.pre(target !== undefined);
      if (target === undefined) return;
      const step = { ...policyCase, plan: rolePlan(group.scheme, group.member, target) };
      expect(passes(steps, { ...step, policy: { ...policy, steps: 'adjacent' } })).toBe(true);
    }),
  );
});

test('no change passes both a key for promotions and one for demotions', () => {
  fc.assert(
    fc.property(cases, (policyCase) => {
      const [up, down] = directions.map((only) => passes(direction, { ...policyCase, key: { direction: only } }));
      expect([up, down]).toEqual([rise(policyCase.plan) > 0, rise(policyCase.plan) < 0]);
    }),
  );
});

test('a verified ranker outranks the target and every role of the rankee, and has the minimum rank', () => {
  const withRanker = cases.chain((policyCase) =>
    fc.record({ policyCase: fc.constant(policyCase), rankers: fc.subarray(customsOf(policyCase.scheme.roles)) }),
  );
  fc.assert(
    fc.property(withRanker, ({ policyCase, rankers }) => {
      const highest = Math.max(0, ...rankers.map((role) => role.rank));
      const held = heldRoles(policyCase.scheme.roles, {
        userId: policyCase.request.rankeeId,
        roleIds: policyCase.plan.goal.from,
      });
      const isAbove = [...held, policyCase.plan.target].every((role) => role.rank < highest);
      expect(refusalOfRanker(policyCase, rankers) === undefined).toBe(
        isAbove && highest >= policyCase.policy.minRankerRank,
      );
    }),
  );
});

function caseOf({ scheme, member, target }: RankCase): PolicyCase {
  const { userId: rankeeId } = member;
  return {
    policy: openPolicy,
    key: {},
    request: { rankeeId, rankeeName: 'Ada', rankerId: 9, rankerName: 'Grace', newRankId: target.id },
    scheme,
    plan: rolePlan(scheme, member, target),
    acting: undefined,
    sinceLastChangeMs: 1_000,
    sinceRankersLastChangeMs: 1_000,
  };
}

/** Returns the next role up or down; `undefined` if there is none, or if two roles share the next rank. */
function nextOf({ scheme }: RankCase, from: number, way: 'up' | 'down') {
  try {
    return neighbor(scheme, { height: from, direction: way });
  } catch {
    return undefined;
  }
}
