import { RankdError } from '../../base/errors.ts';
import type { CallContext, Pace } from '../../ports/index.ts';
import type { Schedule } from './budget.ts';
import { limited } from './platform-error.ts';
import type { RateReading } from './retry-after.ts';
import { hasArrived, type ReservedSlot, type WaitQueue } from './wait-queue.ts';

/**
 * Admits the calls of one operation at the pace of the platform's budget: in order within a lane, in turn between lanes, and
 * heavy lanes last. A slot can be reserved for a later call: nobody who enters or reserves after that takes it away.
 * A call that belongs to a change which has begun (`call.reservation` is set) is never heavy.
 */
export interface Gate {
  /** How often in a row the platform asked us to wait. */
  readonly refusals: number;
  /** How long the platform takes to answer a call at present. */
  readonly answerMs: number;
  /** True if a slot that is reserved may have to be waited for. */
  readonly isScarce: boolean;
  /**
   * Resolves when the call may be sent; the caller must `leave` after it. `slot` is the one reserved for the call, which this
   * uses up. Without one, or with one that is used up, the call comes after all reserved slots.
   * Throws `platform_busy` as soon as it is clear that the call can't start before `call.deadlineAt`, and when `call.signal` is
   * aborted; `platform_unavailable` if it could start now but its time is over.
   */
  enter(call: CallContext, slot?: ReservedSlot): Promise<void>;
  /**
   * Reserves a slot before `deadlineAt` for a later call. It stays reserved until the call enters with it, or it is released, or
   * the deadline passes. Throws `platform_busy` if there is no such slot, or if taking it would make a waiting call or an earlier
   * reservation late; `platform_unavailable` if only the deadline is in the way. A budget that is shared is waited for.
   */
  reserve(bounds: Pick<CallContext, 'deadlineAt' | 'lane' | 'signal'>): ReservedSlot | Promise<ReservedSlot>;
  /** Does nothing if the call has entered. */
  release(slot: ReservedSlot): void;
  /** An admitted call has ended, with what its answer said of the budget. */
  leave(reading?: RateReading): void;
  /** As `leave`, for a call that the platform refused because too many came. True if, by its own count, calls were left. */
  leaveRefused(reading: RateReading): boolean;
  /** The platform took so long to answer a call, whatever it said. */
  answered(ms: number): void;
  /** The platform carried out a call: it no longer asks us to wait. */
  accepted(): void;
  /** Admits nobody for `ms`: the platform asked for it. */
  close(ms: number): void;
  pace(): Omit<Pace, 'operation'>;
  /** Resolves once everything was told to a ledger that others share. Nobody enters after that. */
  end(): Promise<void>;
}

export interface GateOptions {
  /** What the gate admits, as an error names it, e.g. `giving roles`. */
  name: string;
  /** Calls per window, until the platform's headers say otherwise. */
  limit: number;
  /** One minute unless given. */
  windowMs?: number;
  /** Calls that may be in flight at the same time. */
  maxInFlight?: number;
  /** How far apart calls start that would be a burst; 0 unless given. */
  burstSpacingMs?: number;
}

/** Enough for every caller that is likely at one moment, yet a burst does not open hundreds of connections. */
export const defaultMaxInFlight = 64;

/** Nobody is kept waiting for a start so near to the deadline that a process that wakes a little late would miss it: a tenth of the wait, at most this. */
const maxMarginMs = 100;

/**
 * Every entry that, as the queue stands now, would start after its deadline, and how long it would wait. Such a reservation lapses.
 * `ownStart`: when an entry starts that has its slot already.
 */
export function hopeless(
  queue: WaitQueue,
  starts: Schedule,
  now: number,
  ownStart: (entry: ReservedSlot) => number | undefined = () => undefined,
): Array<{ entry: ReservedSlot; waitMs: number }> {
  const found: Array<{ entry: ReservedSlot; waitMs: number }> = [];
  for (const entry of queue.inOrder()) {
    const ownStartAt = ownStart(entry);
    const startAt = ownStartAt ?? starts.next(isHeavy(entry));
    const marginMs = queue.isReserved(entry) ? 0 : Math.min(maxMarginMs, (startAt - now) / 10);
    if (startAt + marginMs > entry.deadlineAt) found.push({ entry, waitMs: startAt - now });
    else if (ownStartAt === undefined) starts.take(isHeavy(entry));
  }
  return found;
}

/** When the next call can start, or more calls than now if reservations are in its way. */
export function nextStart(starts: Schedule, next: ReservedSlot, now: number): number {
  let start = starts.take(isHeavy(next));
  while (start <= now) start = starts.take();
  return start;
}

/** True if others go first, and some slots are left to them. */
export function isHeavy(entry: ReservedSlot): boolean {
  return hasArrived(entry) && entry.isHeavy;
}

/** The refusal of a call that could start in `waitMs`. If that is now, the budget is not the reason: its time is over. */
export function tooLate(name: string, waitMs: number): RankdError {
  if (waitMs > 0) return limited(`before ${name} again`, waitMs);
  const message = `This request had no time left to ask Roblox (${name}); nothing was sent. Try again.`;
  return new RankdError('platform_unavailable', message);
}

/** The refusal of a call whose signal was aborted, where the next one could start in `waitMs`. */
export function endedWhileWaiting(name: string, waitMs: number, cause: unknown): RankdError {
  const message = `The request ended while it waited for its turn in Roblox's rate limit for ${name}; nothing was sent.`;
  return new RankdError('platform_busy', message, { retryAfterMs: Math.max(1, Math.ceil(waitMs)), cause });
}
