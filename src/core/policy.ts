import type { RankdError } from '../base/errors.ts';
import { refusalAboveActing } from './acting-account.ts';
import { cooldown, rankerCooldown } from './rules/cooldowns.ts';
import { direction, steps } from './rules/moves.ts';
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

/** The rules that a change is asked about. A suspension may take a member down by any number of ranks. */
export function rulesFor({ isSuspension }: { isSuspension: boolean }): readonly PolicyRule[] {
  return isSuspension ? policyRules.filter((rule) => rule !== steps) : policyRules;
}

/** Rules on what may be changed at all hold for an undo too. Rules on who asks, how often and how far at once do not. */
const rulesThatHold = [ceiling, floor, lockedRoles, protectedMembers];

/** Why these roles may not be put back; `undefined` if they may. */
export function refusalOfUndo(
  of: Pick<PolicyCase, 'policy' | 'request' | 'scheme' | 'plan' | 'acting'>,
): RankdError | undefined {
  const asOperator = { ...of, key: undefined, sinceLastChangeMs: undefined, sinceRankersLastChangeMs: undefined };
  for (const { refusal } of rulesThatHold) {
    const found = refusal(asOperator);
    if (found !== undefined) return found;
  }
  return refusalAboveActing(asOperator);
}
