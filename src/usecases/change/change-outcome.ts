import { RankdError } from '../../base/errors.ts';
import { endState, isKept } from '../../core/change-codes.ts';
import { applyOutcome, type ChangeOutcome, compensating } from '../../core/change-state.ts';
import type { RankChange } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

/** The outcome of a change: its record, and the error behind it for the caller and the log. */
export interface ChangeResult {
  outcome: ChangeOutcome;
  error?: RankdError;
  /** True if the first write was refused, and may have been carried out nevertheless. */
  isInDoubt?: boolean;
}

export function resultOf(error: RankdError): ChangeResult {
  return { outcome: outcomeOf(error), error };
}

/** The outcome of a change that ended with this error. */
export function outcomeOf(error: RankdError): ChangeOutcome {
  return {
    state: endState(error.code),
    code: error.code,
    message: error.message,
    ...(!isKept(error.code) && { forgetIdempotencyKey: true }),
  };
}

/** The error for a caller whose change is not applied; `undefined` if it is. `error` is the original one, if known. */
export function errorOf({ state, code, message }: RankChange, error?: RankdError): RankdError | undefined {
  if (state === 'applied') return undefined;
  // While a change is being reverted, its code is the reason for that. Its outcome is unknown nevertheless.
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

type Keeping = Pick<Ports, 'store' | 'clock'>;

/** Ends an open change that this process holds, or gives it up as unknown. `undefined` if this process does not hold it, or no longer. */
export function keepOutcome(
  { store, clock }: Keeping,
  changeId: string,
  outcome: ChangeOutcome,
): Promise<RankChange | undefined> {
  return store.updateChange(changeId, (kept) => applyOutcome(kept, outcome, clock.now()));
}

/**
 * Records that an open change is being reverted, before the first write that does so. Throws `conflict` if this process
 * no longer holds it.
 */
export async function keepCompensating(
  { store, clock }: Keeping,
  changeId: string,
  { code, message }: Pick<RankdError, 'code' | 'message'>,
): Promise<void> {
  const kept = await store.updateChange(changeId, (change) => compensating(change, { code, message }, clock.now()));
  if (kept === undefined)
    throw new RankdError('conflict', `Change ${changeId} has ended already, or another process works on it.`);
}
