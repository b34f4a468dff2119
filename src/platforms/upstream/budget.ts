import { maxWaitMs, type RateReading } from './retry-after.ts';

/** The platform tells windows in whole seconds: ends this close together are one window's. */
const sameWindowMs = 2_000;

/**
 * How many calls of one operation may start, and when. Times are milliseconds on `Clock.monotonic()`.
 *
 * Each call spends a slot. Until the platform says when its window ends, a slot is spent for a whole window after the start:
 * no window of the platform's, wherever it begins, then sees more than the limit. Once it says so, its count and end hold.
 */
export class Budget {
  #limit: number;
  #windowMs: number;
  /** When the spent slots come free again, ascending. */
  #spent: Release[] = [];
  /** No call starts before; after a closure it moves on with every start, until the platform says better. */
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
    const next = (spare = 0) => {
      for (; free <= spare; released += 1) {
        const { at, slots } = releases[released] ?? { at: now, slots: 1 }; // there is one: `spare` is below the limit
        startsAt = Math.max(startsAt, at);
        free += slots;
      }
      return startsAt;
    };
    const take = (spare = 0) => {
      const start = next(spare);
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
    const later = spent.findIndex(({ at }) => at > release.at); // where the window was a longer one before
    spent.splice(later < 0 ? spent.length : later, 0, release);
  }

  /** A call that was started has ended, with what its answer said of the budget. */
  settle(reading: RateReading, now: number): void {
    this.#inFlight -= 1;
    this.#limit = reading.limit ?? this.#limit;
    this.#windowMs = reading.windowMs ?? this.#windowMs;
    if (reading.remaining !== undefined && reading.resetMs !== undefined) {
      this.#adopt({ remaining: reading.remaining, resetMs: reading.resetMs }, now);
    }
  }

  /** No call starts for `ms`; after that one at a time, spread evenly over a window, until the platform says better. */
  close(ms: number, now: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, now + Math.min(ms, maxWaitMs));
    this.#opensAt = Math.max(this.#opensAt, this.#closedUntil);
    this.#spacingMs = this.#windowMs / this.#limit;
  }

  /** Takes the platform's count. Calls in flight may not be in it yet, and answers can arrive out of order: within a window it only rises. */
  #adopt({ remaining, resetMs }: { remaining: number; resetMs: number }, now: number): void {
    // A second at least: a reset of 0 is a rounded one. A window at most: a longer one would be an epoch or an error.
    const endsAt = now + Math.min(Math.max(resetMs, 1_000), this.#windowMs);
    const counted = Math.max(0, this.#limit - remaining) + this.#inFlight;
    const isSameWindow = now < this.#windowEndsAt && Math.abs(endsAt - this.#windowEndsAt) <= sameWindowMs;
    const spent = isSameWindow ? Math.max(counted, slotsOf(this.#stillSpent(now))) : counted;
    this.#windowEndsAt = endsAt;
    // What was under way before a closure says nothing against it.
    if (now >= this.#closedUntil) {
      this.#spacingMs = 0;
      this.#opensAt = now;
    }
    this.#spent = [{ at: endsAt, slots: spent }];
  }

  #spacingAfter(start: number): number {
    return start < this.#closedUntil + this.#windowMs ? this.#spacingMs : 0;
  }

  /** The slots that are not free, first to come free first. */
  #stillSpent(now: number): Release[] {
    const kept = this.#spent.findIndex(({ at }) => at > now);
    this.#spent.splice(0, kept < 0 ? this.#spent.length : kept);
    return this.#spent;
  }
}

/** Of calls that may start one after the other, without end. Those that leave `spare` slots free come last. */
export interface Schedule {
  /** When the next one may. */
  next(spare?: number): number;
  /** The same; it takes its slot, and what is asked then is about the one after it. */
  take(spare?: number): number;
}

/** So many slots come free at `at`. */
interface Release {
  at: number;
  slots: number;
}

function slotsOf(releases: readonly Release[]): number {
  return releases.reduce((sum, { slots }) => sum + slots, 0);
}
