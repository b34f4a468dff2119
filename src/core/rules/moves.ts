import { RankdError } from '../../base/errors.ts';
import { inWords } from '../../base/time.ts';
import { originHint, roleTitle } from '../describe.ts';
import type { Direction, KeyRules, Role } from '../model.ts';
import { type RolePlan, rise } from '../role-plan.ts';
import { heightOf } from '../role-scheme.ts';
import { rungs } from '../target.ts';
import type { Policy, PolicyRule } from './rule.ts';

export const direction: PolicyRule = {
  name: 'direction',
  refusal: ({ key, plan }) => refusalOfDirection(key, directionOf(plan)),
};

/** Treats the end of a hold as a promotion, even if the member does not rise. */
export const directionOfReturn: PolicyRule = {
  name: 'direction',
  refusal: ({ key }) => refusalOfDirection(key, 'promote'),
};

function refusalOfDirection(key: KeyRules | undefined, requested: Direction | undefined): RankdError | undefined {
  const allowed = key?.direction;
  if (allowed === undefined || requested === allowed) return undefined;
  return new RankdError('key_not_allowed', `This key may only ${allowed} members: its direction is ${allowed}.`, {
    hint: 'rankd key set KEY --direction both',
  });
}

/**
 * Returns the direction of a change, or `undefined` if the rank stays the same. Giving an extra role is treated as a
 * promotion, and taking one as a demotion.
 */
function directionOf(plan: RolePlan): Direction | undefined {
  if (rise(plan) === 0) return undefined;
  return rise(plan) > 0 ? 'promote' : 'demote';
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
      `A change from rank ${highestBefore?.rank ?? 0} to ${roleTitle(target)} would skip ${roleTitle(skipped)}: policy.steps is adjacent.`,
      { hint: `change the rank one step at a time, or set policy.steps to any ${originHint}` },
    );
  },
};

export const cooldown: PolicyRule = {
  name: 'cooldown',
  refusal({ policy, request, plan, sinceLastChangeMs }) {
    const cooldownMs = cooldownMsAt(plan.highestBefore?.rank ?? 0, policy);
    const retryAfterMs = msLeft(cooldownMs, sinceLastChangeMs);
    if (retryAfterMs === 0) return undefined;
    return new RankdError(
      'cooldown',
      `Member ${request.rankeeId} was ranked less than ${inWords(cooldownMs)} ago (policy.cooldown); try again in ${inWords(retryAfterMs)}.`,
      {
        retryAfterMs,
        hint: 'wait, or restore the previous roles with `rankd history undo CHANGE`, which ignores the cooldown',
      },
    );
  },
};

function cooldownMsAt(rank: number, { cooldowns }: Pick<Policy, 'cooldowns'>): number {
  const reached = cooldowns.filter(({ from }) => from <= rank).sort((a, b) => a.from - b.from);
  return reached.at(-1)?.forMs ?? 0;
}

/** Limits how often a ranker can change ranks. Does not apply to changes that name no player as ranker. */
export const rankerCooldown: PolicyRule = {
  name: 'ranker cooldown',
  refusal({ policy, request, sinceRankersLastChangeMs }) {
    if (request.rankerId === 0) return undefined;
    const retryAfterMs = msLeft(policy.rankerCooldownMs, sinceRankersLastChangeMs);
    if (retryAfterMs === 0) return undefined;
    return new RankdError(
      'cooldown',
      `Ranker ${request.rankerId} changed a rank less than ${inWords(policy.rankerCooldownMs)} ago (policy.ranker_cooldown); try again in ${inWords(retryAfterMs)}.`,
      { retryAfterMs, hint: `wait, or lower policy.ranker_cooldown ${originHint}` },
    );
  },
};

/**
 * Returns the remaining time. If the clock was set back, `sinceMs` is negative: the cooldown is then treated as over,
 * because it could otherwise last for hours.
 */
function msLeft(cooldownMs: number, sinceMs = Number.POSITIVE_INFINITY): number {
  return sinceMs < 0 ? 0 : Math.max(0, cooldownMs - sinceMs);
}
