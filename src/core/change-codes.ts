import type { ErrorCode } from '../base/errors.ts';
import type { ChangeState } from './model.ts';

/** The codes of changes that violate one of rankd's or the platform's rules. */
const refusals = new Set<ErrorCode>([
  'invalid_key',
  'place_not_whitelisted',
  'key_not_allowed',
  'rank_not_allowed',
  'member_protected',
  'member_suspended',
  'already_suspended',
  'ranker_not_allowed',
  'above_acting_account',
  'member_not_found',
  'unknown_rank',
  'ambiguous_rank',
  'rank_differs',
  'reason_required',
  'needs_ladder',
  'configuration_misfit',
  'cooldown',
  'key_paused',
]);

/**
 * The codes of changes that had no effect, but may succeed later. If such a request is repeated, rankd does not replay
 * the outcome.
 */
const temporary = new Set<ErrorCode>([
  'invalid_key',
  'place_not_whitelisted',
  'cooldown',
  'key_paused',
  'config_invalid',
  'needs_ladder',
  'configuration_misfit',
  'platform_credential',
  'platform_busy',
  'platform_unavailable',
  'store_unavailable',
  'shutting_down',
]);

export const changeCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...refusals,
  ...temporary,
  ...(['outcome_unknown', 'platform_rejected', 'internal'] as const),
]);

export function endState(code: ErrorCode): Exclude<ChangeState, 'pending' | 'applied'> {
  if (code === 'outcome_unknown') return 'unknown';
  return refusals.has(code) ? 'refused' : 'failed';
}

/** True if a repeated request with the same idempotency key gets the same outcome. */
export function isReplayed(code: ErrorCode | null): boolean {
  return code === null || !temporary.has(code);
}

export function mayStillSucceed(code: ErrorCode): boolean {
  return temporary.has(code) || code === 'outcome_unknown';
}
