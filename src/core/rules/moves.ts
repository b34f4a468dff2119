import { RankdError } from '../../base/errors.ts';
import { roleTitle } from '../describe.ts';
import type { Direction } from '../model.ts';
import { rungs } from '../next-role.ts';
import type { RolePlan } from '../role-plan.ts';
import type { PolicyRule } from './rule.ts';

export const direction: PolicyRule = {
  name: 'direction',
  refusal({ key, plan }) {
    const allowed = key?.direction;
    if (allowed === undefined || directionOf(plan) === allowed) return undefined;
    return new RankdError('key_not_allowed', `This key may only ${allowed} members, as set by its direction.`, {
      hint: 'rankd key set KEY --direction both',
    });
  },
};

export const steps: PolicyRule = {
  name: 'steps',
  refusal({ policy, scheme, plan }) {
    if (policy.steps === 'any') return undefined;
    const { rankBefore, rankAfter, target } = plan;
    const [lower, upper] = [Math.min(rankBefore, rankAfter), Math.max(rankBefore, rankAfter)];
    const skipped = rungs(scheme, policy.lockedRoles).find(({ rank }) => rank > lower && rank < upper);
    if (skipped === undefined) return undefined;
    return new RankdError(
      'rank_not_allowed',
      `From rank ${rankBefore} to ${roleTitle(target)} would skip ${roleTitle(skipped)}: policy.steps is adjacent.`,
      { hint: 'go rank by rank, or set policy.steps to any in rankd.yaml' },
    );
  },
};

/** `undefined` if the highest rank stays the same. */
function directionOf({ rankBefore, rankAfter }: RolePlan): Direction | undefined {
  if (rankAfter === rankBefore) return undefined;
  return rankAfter > rankBefore ? 'promote' : 'demote';
}
