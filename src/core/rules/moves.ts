import { RankdError } from '../../base/errors.ts';
import { roleTitle } from '../describe.ts';
import type { Direction, KeyRules, Role } from '../model.ts';
import { rungs } from '../next-role.ts';
import { type RolePlan, rise } from '../role-plan.ts';
import { heightOf } from '../role-scheme.ts';
import type { PolicyRule } from './rule.ts';

export const direction: PolicyRule = {
  name: 'direction',
  refusal: ({ key, plan }) => refusalOfDirection(key, directionOf(plan)),
};

/** The end of a suspension is a promotion, even if the member's highest rank stays the same. */
export const directionOfReturn: PolicyRule = {
  name: 'direction',
  refusal: ({ key }) => refusalOfDirection(key, 'promote'),
};

function refusalOfDirection(key: KeyRules | undefined, asked: Direction | undefined): RankdError | undefined {
  const allowed = key?.direction;
  if (allowed === undefined || asked === allowed) return undefined;
  return new RankdError('key_not_allowed', `This key may only ${allowed} members, as set by its direction.`, {
    hint: 'rankd key set KEY --direction both',
  });
}

export const steps: PolicyRule = {
  name: 'steps',
  refusal({ policy, scheme, plan }) {
    if (policy.steps === 'any') return undefined;
    const { highestBefore, target } = plan;
    const heights = [heightOf(highestBefore), heightOf(target)];
    const [lower, upper] = [Math.min(...heights), Math.max(...heights)];
    const isBetween = (role: Role) => heightOf(role) > lower && heightOf(role) < upper;
    const skipped = rungs(scheme, policy.lockedRoles).find(isBetween);
    if (skipped === undefined) return undefined;
    return new RankdError(
      'rank_not_allowed',
      `From rank ${highestBefore?.rank ?? 0} to ${roleTitle(target)} would skip ${roleTitle(skipped)}: policy.steps is adjacent.`,
      { hint: 'go rank by rank, or set policy.steps to any in rankd.yaml' },
    );
  },
};

/** `undefined` if the member goes neither up nor down. */
function directionOf(plan: RolePlan): Direction | undefined {
  if (rise(plan) === 0) return undefined;
  return rise(plan) > 0 ? 'promote' : 'demote';
}
