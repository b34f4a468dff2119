import type { RankdError } from '../base/errors.ts';
import { refusalAboveActing } from './acting-account.ts';
import type { Hold } from './model.ts';
import { type RolePlan, restorePlan, rise } from './role-plan.ts';
import { cooldown, direction, directionOfReturn, rankerCooldown, steps } from './rules/moves.ts';
import { givenReason, namedRanker, protectedMembers, selfRank } from './rules/rankers.ts';
import { ceiling, floor, lockedRoles, privilegedRoles } from './rules/ranks.ts';
import type { PolicyCase, PolicyRule } from './rules/rule.ts';

/** The rules that need no further read of the group, in the order in which they are checked. */
export const policyRules: readonly PolicyRule[] = [
  ceiling,
  floor,
  lockedRoles,
  privilegedRoles,
  protectedMembers,
  direction,
  steps,
  givenReason,
  selfRank,
  namedRanker,
  cooldown,
  rankerCooldown,
];

const withoutSteps = policyRules.filter((rule) => rule !== steps);

/**
 * The rules for each kind of requested change. Step limits apply only to rank changes. The end of a hold counts as a
 * promotion. A suspension's rules also apply to the early return that it causes; see `earlyReturnOf`.
 */
export const rulesFor = {
  rank: policyRules,
  role: withoutSteps,
  suspension: withoutSteps.map(alsoOnEarlyReturn),
  return: withoutSteps.map(onReturn),
} as const satisfies Record<string, readonly PolicyRule[]>;

function onReturn(rule: PolicyRule): PolicyRule {
  return rule === direction ? directionOfReturn : rule;
}

function alsoOnEarlyReturn(rule: PolicyRule): PolicyRule {
  const { name } = rule;
  return { name, refusal: (of) => rule.refusal(of) ?? refusalOfEarlyReturn(of, onReturn(rule).refusal) };
}

/**
 * Checks the plan `of.earlyReturn`, if there is one, with `refusal`. An early return is treated as a promotion only if
 * the member rises.
 */
export function refusalOfEarlyReturn(of: PolicyCase, refusal: PolicyRule['refusal']): RankdError | undefined {
  const { earlyReturn } = of;
  if (earlyReturn === undefined || (refusal === directionOfReturn.refusal && rise(earlyReturn) <= 0)) return undefined;
  return refusal({ ...of, plan: earlyReturn });
}

/**
 * Returns the plan for an early return. The end of a suspension restores the roles from before the temporary rank or
 * role that the suspension replaced. Without a check of this plan, a key could therefore end a temporary demotion early
 * by suspending the member. Returns `undefined` for the operator, or if the member has no temporary rank or role.
 */
export function earlyReturnOf(
  { key, request, scheme, plan }: Pick<PolicyCase, 'key' | 'request' | 'scheme' | 'plan'>,
  open: Hold | undefined,
): RolePlan | undefined {
  if (key === undefined || open?.kind !== 'temporary') return undefined;
  return restorePlan(scheme, { userId: request.rankeeId, roleIds: plan.goal.from }, open.rolesBefore);
}

/** The only rules that apply to an undo, and to the end of a hold by the operator or the daemon. */
const undoRules = [ceiling, floor, lockedRoles, protectedMembers];

export function refusalOfUndo(
  of: Pick<PolicyCase, 'policy' | 'request' | 'scheme' | 'plan' | 'acting'>,
): RankdError | undefined {
  const asOperator = { ...of, key: undefined, sinceLastChangeMs: undefined, sinceRankersLastChangeMs: undefined };
  return firstRefusal(undoRules, asOperator) ?? refusalAboveActing(asOperator);
}

export function firstRefusal(rules: readonly PolicyRule[], of: PolicyCase): RankdError | undefined {
  for (const { refusal } of rules) {
    const found = refusal(of);
    if (found !== undefined) return found;
  }
  return undefined;
}
