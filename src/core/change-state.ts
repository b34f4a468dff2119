import type { ErrorCode } from '../base/errors.ts';
import { changeEvent, type DomainEvent } from './events.ts';
import { type HoldsOfMember, holdsAfter } from './holds.ts';
import type { ChangeState, Hold, RankChange } from './model.ts';

/** How a change ended, or that it is not known yet. */
export interface ChangeOutcome {
  state: Exclude<ChangeState, 'pending'>;
  code: ErrorCode | null;
  message: string;
  /** The roles seen at the end. If it is absent, the wanted roles stay in the record. */
  rolesAfter?: number[] | undefined;
  /** If true, the idempotency key is released, so that a repeat is tried anew. */
  forgetIdempotencyKey?: boolean;
}

/** What becomes of an open change and of the member's holds, with what the audit is told of it. */
export interface ChangeUpdate {
  change: RankChange;
  /** The holds that are new, or differ from before. */
  holds: Hold[];
  /** True if its holder goes on working on it; otherwise it has none from then on. */
  isHeld: boolean;
  events: DomainEvent[];
}

/**
 * What an outcome makes of an open change at that time (epoch milliseconds). A change that becomes unknown keeps what its
 * reconciliation needs: the roles that were wanted and, if it is being put back, the reason for that.
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
 * A change that was told as applied, and that the platform was seen not to hold, or the other way round: its outcome is unknown
 * again. `wanted` has the roles that it was for: a change that was refused has those that were found instead.
 */
export function reopened(ended: Ended, wanted: Pick<RankChange, 'rolesAfter'>, now: number): ChangeUpdate {
  const seen =
    ended.change.state === 'applied'
      ? 'not to hold what it said it had carried out'
      : 'to hold what it said it had refused';
  const message = `Roblox was seen ${seen}. rankd goes on finding out; the history will tell.`;
  return unknownAgain(ended, { ...wanted, message }, now);
}

/**
 * A change that has ended, and of which a write may have reached the platform after that, by a process that had stood still: its outcome is
 * unknown again. `wanted` has the roles that it was for.
 */
export function reopenedLate(ended: Ended, wanted: Pick<RankChange, 'rolesAfter'>, now: number): ChangeUpdate {
  const message =
    'A write of this change may have reached Roblox late, after another daemon had taken over. rankd goes on finding out; the history will tell.';
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

/** The change as it is once it is to be put back, for this reason. It is kept before the first write of the compensation. */
export function compensating(
  { change }: { change: RankChange },
  why: { code: ErrorCode; message: string },
  now: number,
): ChangeUpdate {
  const after: RankChange = { ...change, phase: 'compensate', ...why };
  return { change: after, isHeld: true, holds: [], events: [changeEvent(after, 'compensate', now)] };
}
