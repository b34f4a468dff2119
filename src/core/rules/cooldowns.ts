import { RankdError } from '../../base/errors.ts';
import type { PolicyRule } from './rule.ts';

export const cooldown: PolicyRule = {
  name: 'cooldown',
  refusal({ policy, request, sinceLastChangeMs }) {
    const retryAfterMs = msLeft(policy.cooldownMs, sinceLastChangeMs);
    if (retryAfterMs === 0) return undefined;
    return new RankdError(
      'cooldown',
      `Member ${request.rankeeId} was ranked a moment ago (policy.cooldown); try again in ${inSeconds(retryAfterMs)}.`,
      { retryAfterMs, hint: 'wait, or lower policy.cooldown in rankd.yaml' },
    );
  },
};

/** A change without a player behind it has no ranker, so this cooldown does not apply. */
export const rankerCooldown: PolicyRule = {
  name: 'ranker cooldown',
  refusal({ policy, request, sinceRankersLastChangeMs }) {
    if (request.rankerId === 0) return undefined;
    const { rankerId } = request;
    return refusalOfRankersPace({
      rankerId,
      cooldownMs: policy.rankerCooldownMs,
      sinceLastChangeMs: sinceRankersLastChangeMs,
    });
  },
};

interface RankersPace {
  rankerId: number;
  cooldownMs: number;
  sinceLastChangeMs: number | undefined;
}

/** The refusal of a change that comes too soon after the ranker's previous one. */
function refusalOfRankersPace({ rankerId, cooldownMs, sinceLastChangeMs }: RankersPace): RankdError | undefined {
  const retryAfterMs = msLeft(cooldownMs, sinceLastChangeMs);
  if (retryAfterMs === 0) return undefined;
  return new RankdError(
    'cooldown',
    `Ranker ${rankerId} changed a rank a moment ago (policy.ranker_cooldown); try again in ${inSeconds(retryAfterMs)}.`,
    { retryAfterMs, hint: 'wait, or lower policy.ranker_cooldown in rankd.yaml' },
  );
}

/**
 * `sinceMs` is negative if the clock was set back. The cooldown then counts as over: it could otherwise last for hours.
 */
function msLeft(cooldownMs: number, sinceMs = Number.POSITIVE_INFINITY): number {
  return sinceMs < 0 ? 0 : Math.max(0, cooldownMs - sinceMs);
}

function inSeconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} seconds`;
}
