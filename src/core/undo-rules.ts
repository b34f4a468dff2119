import type { RankdError } from '../base/errors.ts';
import { refusalAboveActing } from './acting-account.ts';
import { protectedMembers } from './rules/protected-members.ts';
import { ceiling, floor, lockedRoles } from './rules/ranks.ts';
import type { PolicyCase } from './rules/rule.ts';

/** What may be touched at all holds for an undo too; who asks, how often and how far at once does not. */
const rulesThatHold = [ceiling, floor, lockedRoles, protectedMembers];

/** Why these roles may not be put back, or `undefined`. */
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
