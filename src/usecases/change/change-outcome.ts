import { type ErrorCode, RankdError } from '../../base/errors.ts';
import type { ChangeState, RankChange } from '../../core/model.ts';
import type { ChangeOutcome } from '../../ports/index.ts';

/** Answers by rules, rankd's or the platform's: asking again gives the same no. */
const refusals = new Set<ErrorCode>([
  'invalid_key',
  'place_not_whitelisted',
  'key_not_allowed',
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
  'invalid_key',
  'place_not_whitelisted',
  'cooldown',
  'key_paused',
  'config_invalid',
  'platform_credential',
  'platform_busy',
  'platform_unavailable',
  'store_unavailable',
  'shutting_down',
]);

/** How a change ended: what is kept of it, and the error behind it for the caller and the log. */
export interface Ending {
  outcome: ChangeOutcome;
  error?: RankdError;
}

export function endingOf(error: RankdError): Ending {
  return { outcome: outcomeOf(error), error };
}

/** How a change that ended with this error is kept. */
export function outcomeOf(error: RankdError): ChangeOutcome {
  return {
    state: endState(error.code),
    code: error.code,
    message: error.message,
    ...(!isKept(error.code) && { forgetIdempotencyKey: true }),
  };
}

function endState(code: ErrorCode): Exclude<ChangeState, 'pending' | 'applied'> {
  if (code === 'outcome_unknown') return 'unknown';
  return refusals.has(code) ? 'refused' : 'failed';
}

/** True where a repeat with the same idempotency key gets this outcome again. */
export function isKept(code: ErrorCode | null): boolean {
  return code === null || !passing.has(code);
}

/** True where asking the platform again, later, can end differently: then nothing is decided yet. */
export function isPassing(code: ErrorCode): boolean {
  return passing.has(code) || code === 'outcome_unknown';
}

/** What a caller is told of a change that is not applied, `undefined` where it is. `error` is what it ended with, where that is known. */
export function errorOf({ state, code, message }: RankChange, error?: RankdError): RankdError | undefined {
  if (state === 'applied') return undefined;
  // A change that is being put back keeps the reason for that as its code: what becomes of it is unknown all the same.
  if (state === 'unknown' || code === null) return outcomeUnknown(error);
  const { retryAfterMs, hint, cause } = error ?? {};
  return new RankdError(code, message, { retryAfterMs, hint, cause });
}

export function outcomeUnknown(cause?: unknown): RankdError {
  return new RankdError(
    'outcome_unknown',
    'The change was sent, but could not be confirmed in time. rankd goes on finding out; the history will tell.',
    { cause },
  );
}
