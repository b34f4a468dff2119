import type { RankdError } from '../base/errors.ts';
import { refusalAboveActing } from './acting-account.ts';
import { protectedMembers } from './rules/protected-members.ts';
import { ceiling, floor, lockedRoles } from './rules/ranks.ts';
import type { PolicyCase } from './rules/rule.ts';

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
