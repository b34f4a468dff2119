import { maxWaitMs, type RateReading } from './retry-after.ts';

/** The platform gives the end of a window in whole seconds: two ends this close together belong to the same window. */
const sameWindowMs = 2_000;

/**
 * How many calls of one operation may start, and when. Times are milliseconds on `Clock.monotonic()`.
 *
 * Each call spends a slot. As long as the platform has not said when its window ends, a slot stays spent for a whole window: no
 * window of the platform's, wherever it begins, then sees more than the limit. Once it has said so, its count and its end hold.
 */
export class Budget {
  #limit: number;
  #windowMs: number;
  /** When the spent slots come free again, ascending. */
  #spent: Release[] = [];
  /** No call starts before this. After a closure it moves on with every start, until the platform tells its count again. */
  #opensAt = 0;
  #closedUntil = 0;
  #spacingMs = 0;
  #windowEndsAt = 0;
  #inFlight = 0;

  constructor({ limit, windowMs }: { limit: number; windowMs: number }) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  /** When the next calls may start, one after the other. */
  schedule(now: number): Schedule {
    const releases = [...this.#stillSpent(now)];
    let startsAt = Math.max(now, this.#opensAt);
    let free = this.#limit - slotsOf(releases);
    let released = 0;
    const next = (headroom = 0) => {
      for (; free <= headroom; released += 1) {
        const { at, slots } = releases[released] ?? { at: now, slots: 1 }; // there always is one: `headroom` is below the limit
        startsAt = Math.max(startsAt, at);
        free += slots;
      }
      return startsAt;
    };
    const take = (headroom = 0) => {
      const start = next(headroom);
      free -= 1;
      releases.push({ at: start + this.#windowMs, slots: 1 });
      startsAt = start + this.#spacingAfter(start);
      return start;
    };
    return { next, take };
  }

  get limit(): number {
    return this.#limit;
  }

  get windowMs(): number {
    return this.#windowMs;
  }

  /** Calls that could start at once. */
  left(now: number): number {
    if (now < this.#opensAt) return 0;
    return Math.max(0, this.#limit - slotsOf(this.#stillSpent(now)));
  }

  /** A call starts. */
  spend(now: number): void {
    this.#inFlight += 1;
    this.#opensAt = now + this.#spacingAfter(now);
    const release = { at: now + this.#windowMs, slots: 1 };
    const spent = this.#stillSpent(now);
    const later = spent.findIndex(({ at }) => at > release.at); // there are some if the window was longer before
    spent.splice(later < 0 ? spent.length : later, 0, release);
  }

  /** A call has ended, with what its answer said of the budget. */
  finish(reading: RateReading, now: number): void {
    this.#inFlight -= 1;
    this.#limit = reading.limit ?? this.#limit;
    this.#windowMs = reading.windowMs ?? this.#windowMs;
    if (reading.remaining !== undefined && reading.resetMs !== undefined) {
      this.#adopt({ remaining: reading.remaining, resetMs: reading.resetMs }, now);
    }
  }

  /** No call starts for `ms`. After that calls start one at a time, evenly over a window, until the platform tells its count again. */
  close(ms: number, now: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, now + Math.min(ms, maxWaitMs));
    this.#opensAt = Math.max(this.#opensAt, this.#closedUntil);
    this.#spacingMs = this.#windowMs / this.#limit;
  }

  /** Adopts the platform's count. It may lack calls in flight, and answers can arrive out of order: within a window the count only rises. */
  #adopt({ remaining, resetMs }: { remaining: number; resetMs: number }, now: number): void {
    // At least a second, as a reset of 0 was rounded down. At most a window, as more would be an epoch or an error.
    const endsAt = now + Math.min(Math.max(resetMs, 1_000), this.#windowMs);
    const counted = Math.max(0, this.#limit - remaining) + this.#inFlight;
    const isSameWindow = now < this.#windowEndsAt && Math.abs(endsAt - this.#windowEndsAt) <= sameWindowMs;
    const spent = isSameWindow ? Math.max(counted, slotsOf(this.#stillSpent(now))) : counted;
    this.#windowEndsAt = endsAt;
    // An answer that arrives during a closure belongs to a call from before it, and does not end it.
    if (now >= this.#closedUntil) {
      this.#spacingMs = 0;
      this.#opensAt = now;
    }
    this.#spent = [{ at: endsAt, slots: spent }];
  }

  #spacingAfter(start: number): number {
    return start < this.#closedUntil + this.#windowMs ? this.#spacingMs : 0;
  }

  /** The slots that are not free, earliest release first. */
  #stillSpent(now: number): Release[] {
    const kept = this.#spent.findIndex(({ at }) => at > now);
    this.#spent.splice(0, kept < 0 ? this.#spent.length : kept);
    return this.#spent;
  }
}

/** When calls may start, one after the other. A call can be asked to leave `headroom` slots free. */
export interface Schedule {
  /** When the next call may start. */
  next(headroom?: number): number;
  /** The same, and takes its slot: the next question is about the call after it. */
  take(headroom?: number): number;
}

/** `slots` slots come free at `at`. */
interface Release {
  at: number;
  slots: number;
}

function slotsOf(releases: readonly Release[]): number {
  return releases.reduce((sum, { slots }) => sum + slots, 0);
}
