import type { RankdError } from '../base/errors.ts';
import { refusalAboveActing } from './acting-account.ts';
import { rise } from './role-plan.ts';
import { cooldown, rankerCooldown } from './rules/cooldowns.ts';
import { direction, directionOfReturn, steps } from './rules/moves.ts';
import { privilegedRoles } from './rules/privileged-roles.ts';
import { protectedMembers } from './rules/protected-members.ts';
import { namedRanker, selfRank } from './rules/rankers.ts';
import { ceiling, floor, lockedRoles } from './rules/ranks.ts';
import type { PolicyCase, PolicyRule } from './rules/rule.ts';

/** Every rule that needs no further look at the group, in the order in which they are checked. */
export const policyRules: readonly PolicyRule[] = [
  ceiling,
  floor,
  lockedRoles,
  privilegedRoles,
  protectedMembers,
  direction,
  steps,
  selfRank,
  namedRanker,
  cooldown,
  rankerCooldown,
];

const withoutSteps = policyRules.filter((rule) => rule !== steps);

/**
 * The rules for each kind of change that a caller requests. A suspension may take a member down by any number of ranks, and the return from it
 * gives them back. A return is judged as a promotion to the roles that it gives.
 */
export const rulesFor = {
  rank: policyRules,
  suspension: withoutSteps,
  return: withoutSteps.map((rule) => (rule === direction ? directionOfReturn : rule)),
} as const satisfies Record<string, readonly PolicyRule[]>;

/**
 * A suspension ends a temporary rank, and gives the roles from before that rank back at its own end. Why the caller may not bring them back
 * early; `undefined` if the caller may.
 */
export function refusalOfComeback(of: PolicyCase): RankdError | undefined {
  const rules = [ceiling, lockedRoles, privilegedRoles, ...(rise(of.plan) > 0 ? [directionOfReturn] : [])];
  return firstRefusal(rules, of);
}

/** Rules on what may be changed at all hold for an undo too. Rules on who asks, how often and how far at once do not. */
const rulesThatHold = [ceiling, floor, lockedRoles, protectedMembers];

/** Why these roles may not be put back; `undefined` if they may. */
export function refusalOfUndo(
  of: Pick<PolicyCase, 'policy' | 'request' | 'scheme' | 'plan' | 'acting'>,
): RankdError | undefined {
  const asOperator = { ...of, key: undefined, sinceLastChangeMs: undefined, sinceRankersLastChangeMs: undefined };
  return firstRefusal(rulesThatHold, asOperator) ?? refusalAboveActing(asOperator);
}

export function firstRefusal(rules: readonly PolicyRule[], of: PolicyCase): RankdError | undefined {
  for (const { refusal } of rules) {
    const found = refusal(of);
    if (found !== undefined) return found;
  }
  return undefined;
}
