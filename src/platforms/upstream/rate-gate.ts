import { RankdError } from '../../base/errors.ts';
import type { CallContext, Clock, Pace } from '../../ports/index.ts';
import { AnswerTime } from './answer-time.ts';
import { Budget } from './budget.ts';
import { FairShare } from './fair-share.ts';
import { limited } from './platform-error.ts';
import type { RateReading } from './retry-after.ts';
import { hasArrived, queuedCall, type ReservedSlot, WaitQueue } from './wait-queue.ts';

export interface RateGateOptions {
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
  clock: Clock;
}

/** Enough for every caller that is likely at one moment, yet a burst does not open hundreds of connections. */
const defaultMaxInFlight = 64;

/** Nobody is kept waiting for a start so near to the deadline that a process that wakes a little late would miss it: a tenth of the wait, at most this. */
const maxMarginMs = 100;

/**
 * Admits the calls of one operation at the pace of the platform's budget: in order within a lane, in turn between lanes, and
 * heavy lanes last. A slot can be reserved for a later call: nobody who enters or reserves after that takes it away.
 * A call that belongs to a change which has begun (`call.reservation` is set) is never heavy.
 */
export class RateGate {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #budget: Budget;
  readonly #queue = new WaitQueue();
  readonly #shares = new FairShare();
  readonly #maxInFlight: number;
  readonly #answerTime = new AnswerTime();
  #inFlight = 0;
  #refusals = 0;
  /** What the platform said last of the calls that are left, and how long it holds. */
  #told = { remaining: 0, until: 0 };
  #timer: AbortController | undefined;
  #admitted = 0;
  #waitedMs = 0;

  constructor(options: RateGateOptions) {
    const { name, limit, windowMs = 60_000, burstSpacingMs = 0, clock } = options;
    this.#name = name;
    this.#clock = clock;
    this.#budget = new Budget({ limit, windowMs, burstSpacingMs });
    this.#maxInFlight = options.maxInFlight ?? defaultMaxInFlight;
  }

  /** How often in a row the platform asked us to wait. */
  get refusals(): number {
    return this.#refusals;
  }

  /**
   * Resolves when the call may be sent; the caller must `leave` after it. `slot` is the one reserved for the call, which this
   * uses up. Without one, or with one that is used up, the call comes after all reserved slots.
   * Throws `platform_busy` as soon as it is clear that the call can't start before `call.deadlineAt`, and when `call.signal` is
   * aborted; `platform_unavailable` if it could start now but its time is over.
   */
  enter(call: CallContext, slot?: ReservedSlot): Promise<void> {
    const since = this.#clock.monotonic();
    if (call.signal.aborted) return Promise.reject(this.#tooLate(this.#budget.schedule(since).next() - since));
    const isReserved = slot !== undefined && this.#queue.remove(slot);
    const isCounted = !isReserved && call.reservation === undefined;
    const { call: queued, admission } = queuedCall(call, isCounted && this.#countsAsHeavy(call.lane, since), {
      onAdmit: () => {
        this.#admitted += 1;
        this.#waitedMs += this.#clock.monotonic() - since;
      },
      onAbort: (aborted) => {
        this.#queue.remove(aborted);
        this.#update();
        return this.#aborted(call.signal.reason);
      },
    });
    if (isReserved) this.#queue.reserve(queued);
    else this.#queue.push(call.lane, queued);
    this.#update();
    return admission;
  }

  /**
   * Reserves a slot before `deadlineAt` for a later call. It stays reserved until the call enters with it, or it is released, or
   * the deadline passes. Throws `platform_busy` if there is no such slot, or if taking it would make a waiting call or an earlier
   * reservation late; `platform_unavailable` if only the deadline is in the way.
   */
  reserve({ deadlineAt, lane }: Pick<CallContext, 'deadlineAt' | 'lane'>): ReservedSlot {
    this.#update(); // refuses everyone who is late already
    const slot = { deadlineAt };
    this.#queue.reserve(slot);
    const now = this.#clock.monotonic();
    const lateStart = this.#firstLateStart(now, { slot, isHeavy: this.#countsAsHeavy(lane, now) });
    if (lateStart === undefined) return slot;
    this.#queue.remove(slot);
    throw this.#tooLate(lateStart - now);
  }

  /** Does nothing if the call has entered. */
  release(slot: ReservedSlot): void {
    if (this.#queue.remove(slot)) this.#update();
  }

  /** An admitted call has ended, with what its answer said of the budget. */
  leave(reading: RateReading = {}): void {
    this.#end(reading);
    this.#update();
  }

  /** The platform took so long to answer a call, whatever it said. */
  answered(ms: number): void {
    this.#answerTime.note(ms);
  }

  /** How long it takes at present. */
  get answerMs(): number {
    return this.#answerTime.ms;
  }

  /** The platform carried out a call: it no longer asks us to wait. */
  accepted(): void {
    this.#refusals = 0;
    this.#budget.accepted();
  }

  pace(): Omit<Pace, 'operation'> {
    return {
      limit: this.#budget.limit,
      left: this.#budget.left(this.#clock.monotonic()),
      waiting: [...this.#queue.inOrder()].filter(hasArrived).length,
      admitted: this.#admitted,
      waitedMs: this.#waitedMs,
    };
  }

  /** As `leave`, for a call that the platform refused because too many came. True if, by its own count, calls were left. */
  leaveRefused(reading: RateReading): boolean {
    const now = this.#clock.monotonic();
    const toldLast = now < this.#told.until ? this.#told.remaining : 0;
    this.#end(reading);
    if ((reading.remaining ?? 0) > 0) this.#budget.contradicted(now);
    return (reading.remaining ?? toldLast) > 0;
  }

  /** Admits nobody for `ms`: the platform asked for it. */
  close(ms: number): void {
    this.#refusals += 1;
    this.#budget.close(ms, this.#clock.monotonic());
    this.#update();
  }

  #end(reading: RateReading): void {
    this.#inFlight -= 1;
    const now = this.#clock.monotonic();
    const { remaining, resetMs } = reading;
    if (remaining !== undefined && resetMs !== undefined) this.#told = { remaining, until: now + resetMs };
    this.#budget.finish(reading, now);
  }

  #update(): void {
    const now = this.#clock.monotonic();
    this.#refuseHopeless(now);
    while (this.#hasFreeConnection && this.#canAdmitNext(now)) {
      const call = this.#queue.shift();
      if (call === undefined) return;
      this.#inFlight += 1;
      this.#budget.spend(now, call.isHeavy);
      call.admit();
    }
    this.#setTimer(now);
  }

  /** True if the next call can start now, and everyone with an earlier reservation can still start in time after it. */
  #canAdmitNext(now: number): boolean {
    const next = this.#queue.next();
    if (next === undefined) return false;
    const starts = this.#budget.schedule(now);
    return (
      starts.take(isHeavy(next)) <= now &&
      this.#queue.reservedAhead().every(({ deadlineAt }) => starts.take() <= deadlineAt)
    );
  }

  /** Counts a call of the lane. A lane stays heavy while heavy calls of it wait, so that none of its own overtakes them. */
  #countsAsHeavy(lane: string, now: number): boolean {
    return this.#shares.count(lane, now, this.#budget) || this.#queue.hasHeavy(lane);
  }

  /** Refuses every call that, as the queue stands now, would start after its deadline. Such a reservation lapses. */
  #refuseHopeless(now: number): void {
    const starts = this.#budget.schedule(now);
    for (const entry of [...this.#queue.inOrder()]) {
      const startAt = starts.next(isHeavy(entry));
      const marginMs = this.#queue.isReserved(entry) ? 0 : Math.min(maxMarginMs, (startAt - now) / 10);
      if (startAt + marginMs <= entry.deadlineAt) {
        starts.take(isHeavy(entry));
      } else {
        this.#queue.remove(entry);
        if (hasArrived(entry)) entry.refuse(this.#tooLate(startAt - now));
      }
    }
  }

  /** The first start in the queue that is too late, now that `slot` is in it. A heavy lane can't reserve what it must leave. */
  #firstLateStart(now: number, reserved: { slot: ReservedSlot; isHeavy: boolean }): number | undefined {
    const starts = this.#budget.schedule(now);
    for (const entry of this.#queue.inOrder()) {
      const startAt = starts.take(entry === reserved.slot ? reserved.isHeavy : isHeavy(entry));
      if (startAt > entry.deadlineAt) return startAt;
    }
    return undefined;
  }

  #setTimer(now: number): void {
    this.#timer?.abort();
    this.#timer = undefined;
    const next = this.#queue.next();
    if (next === undefined || !this.#hasFreeConnection) return; // the next call that leaves updates
    this.#timer = new AbortController();
    this.#clock.sleep(this.#nextStart(next, now) - now, this.#timer.signal).then(
      () => this.#update(),
      () => undefined, // replaced by a later timer
    );
  }

  /** When the next call can start, or more calls than now if reservations are in its way. */
  #nextStart(next: ReservedSlot, now: number): number {
    const starts = this.#budget.schedule(now);
    let start = starts.take(isHeavy(next));
    while (start <= now) start = starts.take();
    return start;
  }

  get #hasFreeConnection(): boolean {
    return this.#inFlight < this.#maxInFlight;
  }

  /** The refusal of a call that could start in `waitMs`. If that is now, the budget is not the reason: its time is over. */
  #tooLate(waitMs: number): RankdError {
    if (waitMs <= 0) {
      const message = `This request had no time left to ask Roblox (${this.#name}); nothing was sent. Try again.`;
      return new RankdError('platform_unavailable', message);
    }
    return limited(`before ${this.#name} again`, waitMs);
  }

  #aborted(cause: unknown): RankdError {
    const now = this.#clock.monotonic();
    const message = `The request ended while it waited for its turn in Roblox's rate limit for ${this.#name}; nothing was sent.`;
    return new RankdError('platform_busy', message, {
      retryAfterMs: Math.max(1, Math.ceil(this.#budget.schedule(now).next() - now)),
      cause,
    });
  }
}

/** True if others go first, and some slots are left to them. */
function isHeavy(entry: ReservedSlot): boolean {
  return hasArrived(entry) && entry.isHeavy;
}
