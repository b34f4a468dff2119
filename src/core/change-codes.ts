import type { ErrorCode } from '../base/errors.ts';
import type { ChangeState } from './model.ts';

/** The codes for changes that one of rankd's or the platform's rules refuses. */
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
 * The codes after which nothing was changed and a retry can have a different outcome. Outcomes with these codes are not
 * replayed for repeated requests.
 */
const passing = new Set<ErrorCode>([
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

/** The codes that an ended change can have. */
export const changeCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...refusals,
  ...passing,
  ...(['outcome_unknown', 'platform_rejected', 'internal'] as const),
]);

/** Returns the state of a change that ends with this code. */
export function endState(code: ErrorCode): Exclude<ChangeState, 'pending' | 'applied'> {
  if (code === 'outcome_unknown') return 'unknown';
  return refusals.has(code) ? 'refused' : 'failed';
}

/** True if a repeat with the same idempotency key returns the same outcome. */
export function isKept(code: ErrorCode | null): boolean {
  return code === null || !passing.has(code);
}

/** True if a later attempt can have a different outcome. */
export function canStillPass(code: ErrorCode): boolean {
  return passing.has(code) || code === 'outcome_unknown';
}
