import type { ChangeState, RankChange } from '../core/model.ts';
import { type ErrorCode, RankdError } from '../errors.ts';
import type { ChangeOutcome } from '../ports.ts';

/** Answers by rules, rankd's or the platform's: asking again gives the same no. */
const refusals = new Set<ErrorCode>([
  'rank_not_allowed',
  'member_protected',
  'ranker_not_allowed',
  'above_acting_account',
  'member_not_found',
  'unknown_rank',
  'ambiguous_rank',
  'cooldown',
  'key_paused',
]);

/** Nothing came of it, and trying again can end differently: never replayed to a repeat of the request. */
const passing = new Set<ErrorCode>([
  'cooldown',
  'key_paused',
  'platform_busy',
  'platform_unavailable',
  'store_unavailable',
  'shutting_down',
]);

/** How a change that ended with this error is kept. */
export function outcomeOf(error: RankdError): ChangeOutcome {
  return {
    state: endState(error.code),
    code: error.code,
    message: error.message,
    ...(!isKept(error.code) && { forgetIdempotencyKey: true }),
  };
}

export function endState(code: ErrorCode): Exclude<ChangeState, 'pending' | 'applied'> {
  if (code === 'outcome_unknown') return 'unknown';
  return refusals.has(code) ? 'refused' : 'failed';
}

/** True where a repeat with the same idempotency key gets this outcome again. */
export function isKept(code: ErrorCode | null): boolean {
  return code === null || !passing.has(code);
}

/** What a caller is told of a change that is not applied; `undefined` where it is. */
export function errorOf({ state, code, message }: RankChange, retryAfterMs?: number): RankdError | undefined {
  if (state === 'applied') return undefined;
  if (state === 'unknown' || code === null) return outcomeUnknown(); // a change being put back keeps the reason for that as its code
  return new RankdError(code, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

export function outcomeUnknown(cause?: unknown): RankdError {
  return new RankdError(
    'outcome_unknown',
    'The change was sent, but could not be confirmed in time. rankd goes on finding out; the history will tell.',
    { cause },
  );
}
