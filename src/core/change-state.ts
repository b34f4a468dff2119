import type { ErrorCode } from '../base/errors.ts';
import { changeEvent, type DomainEvent } from './events.ts';
import { type HoldsOfMember, holdsAfter } from './holds.ts';
import type { ChangeState, Hold, RankChange } from './model.ts';

export interface ChangeOutcome {
  state: Exclude<ChangeState, 'pending'>;
  code: ErrorCode | null;
  message: string;
  /** The role ids read at the end. If absent, the record retains the wanted role ids. */
  rolesAfter?: number[] | undefined;
  /** If true, the idempotency key is released, so that a repeated request is a new attempt. */
  forgetIdempotencyKey?: boolean;
}

export interface ChangeUpdate {
  change: RankChange;
  /** The new and changed holds. */
  holds: Hold[];
  /** True if the node that holds the change continues to work on it; false if it releases the change. */
  isHeld: boolean;
  events: DomainEvent[];
}

/**
 * Returns the update that records an open change's outcome. A change that becomes unknown retains the data that its
 * reconciliation needs: the wanted roles and, during compensation, the reason for the compensation. `now`: epoch
 * milliseconds.
 */
export function applyOutcome(
  { change, holds }: { change: RankChange; holds: HoldsOfMember },
  outcome: ChangeOutcome,
  now: number,
): ChangeUpdate {
  const { state, code, message, rolesAfter = change.rolesAfter } = outcome;
  if (change.state === 'unknown' && state === 'unknown') return { change, isHeld: false, holds: [], events: [] };
  const { idempotencyKey, ...kept } = change;
  const after: RankChange = {
    ...kept,
    ...(idempotencyKey !== undefined && !outcome.forgetIdempotencyKey && { idempotencyKey }),
    state,
    ...((state !== 'unknown' || change.phase === 'forward') && { code, message }),
    ...(state !== 'unknown' && { rolesAfter, finishedAt: now }),
  };
  return updated({ change: after, isHeld: false, event: changeEvent({ ...after, code }, state, now) }, holds, now);
}

interface Ended {
  change: RankChange;
  holds: HoldsOfMember;
}

/**
 * Returns the update that makes an ended change unknown again, because a later read contradicts its outcome. `wanted`
 * contains the roles that the change was meant to reach: the record of a refused change contains the roles that were
 * found instead.
 */
export function reopened(ended: Ended, wanted: Pick<RankChange, 'rolesAfter'>, now: number): ChangeUpdate {
  const seen =
    ended.change.state === 'applied'
      ? 'does not show a change that it had confirmed'
      : 'shows a change that it had refused';
  const message = `Roblox ${seen}. rankd keeps checking; the history will show the outcome.`;
  return unknownAgain(ended, { ...wanted, message }, now);
}

/**
 * Returns the update that makes an ended change unknown again, because a stalled process may have sent a late write to
 * the platform. `wanted`: as in `reopened`.
 */
export function reopenedLate(ended: Ended, wanted: Pick<RankChange, 'rolesAfter'>, now: number): ChangeUpdate {
  const message =
    'A write of this change may have reached Roblox late, after another daemon had taken over. rankd keeps checking; the history will show the outcome.';
  return unknownAgain(ended, { ...wanted, message }, now);
}

function unknownAgain(
  { change, holds }: Ended,
  { rolesAfter, message }: Pick<RankChange, 'rolesAfter' | 'message'>,
  now: number,
): ChangeUpdate {
  const { finishedAt: _, ...kept } = change;
  const after: RankChange = { ...kept, rolesAfter, state: 'unknown', code: 'outcome_unknown', message };
  return updated({ change: after, isHeld: false, event: changeEvent(after, 'unknown', now) }, holds, now);
}

function updated(
  { change, isHeld, event }: Pick<ChangeUpdate, 'change' | 'isHeld'> & { event: DomainEvent },
  of: HoldsOfMember,
  now: number,
): ChangeUpdate {
  const { holds, events } = holdsAfter(change, of, now);
  return { change, isHeld, holds, events: [event, ...events] };
}

/** Returns the update that begins the compensation of a change. Store it before the first compensating write. */
export function compensating(
  { change }: { change: RankChange },
  why: { code: ErrorCode; message: string },
  now: number,
): ChangeUpdate {
  const after: RankChange = { ...change, phase: 'compensate', ...why };
  return { change: after, isHeld: true, holds: [], events: [changeEvent(after, 'compensate', now)] };
}
