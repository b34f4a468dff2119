import type { RankdError } from '../base/errors.ts';
import { refusalAboveActing } from './acting-account.ts';
import type { Hold } from './model.ts';
import { type RolePlan, restorePlan, rise } from './role-plan.ts';
import { cooldown, direction, directionOfReturn, rankerCooldown, steps } from './rules/moves.ts';
import { givenReason, namedRanker, protectedMembers, selfRank } from './rules/rankers.ts';
import { ceiling, floor, lockedRoles, privilegedRoles } from './rules/ranks.ts';
import type { PolicyCase, PolicyRule } from './rules/rule.ts';

/** Every rule that needs no further read of the group, in the order of the checks. */
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
 * The rules for each kind of change that a caller requests. A suspension may take a member down by any number of ranks, and the return from it
 * gives them back. Roles that return are judged as a promotion: by the return itself, and by a suspension that brings them back early.
 */
export const rulesFor = {
  rank: policyRules,
  role: withoutSteps,
  suspension: withoutSteps.map(alsoOnComeback),
  return: withoutSteps.map(onReturn),
} as const satisfies Record<string, readonly PolicyRule[]>;

function onReturn(rule: PolicyRule): PolicyRule {
  return rule === direction ? directionOfReturn : rule;
}

function alsoOnComeback(rule: PolicyRule): PolicyRule {
  const { name } = rule;
  return { name, refusal: (of) => rule.refusal(of) ?? refusalOfComeback(of, onReturn(rule).refusal) };
}

/** The refusal of the roles that `of.comeback` gives. A comeback that leaves the member no higher than now is not a promotion. */
export function refusalOfComeback(of: PolicyCase, refusal: PolicyRule['refusal']): RankdError | undefined {
  const { comeback } = of;
  if (comeback === undefined || (refusal === directionOfReturn.refusal && rise(comeback) <= 0)) return undefined;
  return refusal({ ...of, plan: comeback });
}

/**
 * A suspension ends a temporary rank, and at its own end the roles from before that rank return. A key that suspends brings them back
 * early; `undefined` if no role returns by this key.
 */
export function comebackOf(
  { key, request, scheme, plan }: Pick<PolicyCase, 'key' | 'request' | 'scheme' | 'plan'>,
  open: Hold | undefined,
): RolePlan | undefined {
  if (key === undefined || open?.kind !== 'temporary') return undefined;
  return restorePlan(scheme, { userId: request.rankeeId, roleIds: plan.goal.from }, open.rolesBefore);
}

/**
 * Rules about the roles and members that may be changed apply to an undo, too. Rules about the ranker, the pace and the
 * step size do not.
 */
const undoRules = [ceiling, floor, lockedRoles, protectedMembers];

/** The refusal to restore these roles; `undefined` if they may be restored. */
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
