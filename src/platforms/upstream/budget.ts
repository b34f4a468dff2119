import { maxWaitMs, type RateReading } from './retry-after.ts';

/** The platform gives the end of a window in whole seconds: two ends this close together belong to the same window. */
const sameWindowMs = 2_000;
/** One rounding of it, which is up: Open Cloud's headers are Envoy's. */
const roundingMs = 1_000;
/**
 * Heavy callers leave this share of the slots free when a window begins, and less and less until it ends: whoever arrives later
 * would otherwise find all of them spent.
 */
const headroomShare = 0.1;
/** Heavy callers may start their calls this much faster than evenly over a window, however short it is. */
const heavyHaste = 10;
/** The first calls do not come in a burst either: a limit that no header tells of is met by a few calls then. */
const cautiousCalls = 50;
/** While the headers are not believed: what a refusal leaves of the pace, and how much of the limit is added to it over a window. */
const decrease = 0.5;
const increase = 0.25;
/** The pace does not fall below this share of the limit. */
const leastShare = 1 / 60;

/**
 * How many calls of one operation may start, and when. Times are milliseconds on `Clock.monotonic()`.
 *
 * Each call spends a slot. As long as the platform has not said when its window ends, a slot stays spent for a whole window: no
 * window of the platform's, wherever it begins, then sees more than the limit. Once it has said so, its count and its end hold,
 * until it refuses a call although it counts some left: then another limit is at work (Open Cloud's page on rate limits says that
 * there may be). Calls start one at a time from then on, at a pace that each refusal halves and that rises slowly. Once it is
 * back at the limit, the platform is believed again.
 */
export class Budget {
  #limit: number;
  #windowMs: number;
  /** When the spent slots come free again, ascending. */
  #spent: Release[] = [];
  /** No call starts before this. After a closure it moves on with every start, until the platform tells its count again. */
  #opensAt = 0;
  #closedUntil = 0;
  #heavyOpensAt = 0;
  #spacingMs = 0;
  #windowEndsAt = Number.NEGATIVE_INFINITY;
  #roundsDown = false;
  #inFlight = 0;
  readonly #burstSpacingMs: number;
  /** Calls that are still to be accepted before others may come in a burst. */
  #caution = cautiousCalls;
  /** Set while the headers are not believed: the pace in calls per window at that time. */
  #doubt: { pace: number; since: number } | undefined;

  /** `burstSpacingMs`: how far apart calls start that would be a burst: those of heavy callers, and the first ones. */
  constructor({ limit, windowMs, burstSpacingMs }: { limit: number; windowMs: number; burstSpacingMs: number }) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#burstSpacingMs = burstSpacingMs;
  }

  /** When the next calls may start, one after the other. */
  schedule(now: number): Schedule {
    const releases = [...this.#stillSpent(now)];
    let startsAt = Math.max(now, this.#opensAt);
    let free = this.#limit - slotsOf(releases);
    let released = 0;
    let heavyStartsAt = this.#heavyOpensAt;
    const next = (isHeavy = false) => {
      for (;;) {
        const release = releases[released];
        const heavyAt = isHeavy ? heavyStartsAt : startsAt;
        const start = Math.max(startsAt, heavyAt, this.#freeAt({ free, refillsAt: release?.at, isHeavy }));
        if (release === undefined || start < release.at) {
          startsAt = start;
          return start;
        }
        startsAt = Math.max(startsAt, release.at);
        free += release.slots;
        released += 1;
      }
    };
    const take = (isHeavy = false) => {
      const start = next(isHeavy);
      free -= 1;
      releases.push({ at: start + this.#windowMs, slots: 1 });
      startsAt = start + this.#spacingAfter(start);
      if (isHeavy) heavyStartsAt = start + this.#heavySpacingMs;
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
    if (now < this.#closedUntil) return 0;
    return Math.max(0, this.#limit - slotsOf(this.#stillSpent(now)));
  }

  /** A call starts. */
  spend(now: number, isHeavy = false): void {
    this.#inFlight += 1;
    const spacingMs = this.#heavySpacingMs;
    if (isHeavy) this.#heavyOpensAt = Math.max(this.#heavyOpensAt, now - 5 * spacingMs) + spacingMs; // what began late delays no other
    this.#opensAt = now + this.#spacingAfter(now);
    const release = { at: this.#releaseAt(now), slots: 1 };
    const spent = this.#stillSpent(now);
    const later = spent.findIndex(({ at }) => at > release.at); // there are some if the window was longer before
    spent.splice(later < 0 ? spent.length : later, 0, release);
  }

  /** A call has ended, with what its answer said of the budget. */
  finish(reading: RateReading, now: number): void {
    this.#inFlight -= 1;
    this.#limit = reading.limit ?? this.#limit;
    this.#windowMs = reading.windowMs ?? this.#windowMs;
    if (this.#isInDoubt(now)) return;
    if (reading.remaining !== undefined && reading.resetMs !== undefined) {
      this.#adopt({ remaining: reading.remaining, resetMs: reading.resetMs }, now);
    }
  }

  /** The platform carried out a call. */
  accepted(): void {
    if (this.#caution > 0) this.#caution -= 1;
  }

  /** The platform refused a call although, by its own count, calls are left: the count is not believed for a while. */
  contradicted(now: number): void {
    if (this.#isInDoubt(now) && now < this.#closedUntil) return; // a call from before the last refusal: it says the same
    const pace = this.#isInDoubt(now) ? this.#paceAt(now) : this.#limit;
    this.#doubt = { pace: Math.max(pace * decrease, this.#limit * leastShare), since: now };
    this.close(this.#spacingAfter(now), now);
  }

  /** No call starts for `ms`. After that calls start one at a time, evenly over a window, until the platform tells its count again. */
  close(ms: number, now: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, now + Math.min(ms, maxWaitMs));
    this.#opensAt = Math.max(this.#opensAt, this.#closedUntil);
    this.#spacingMs = this.#windowMs / this.#limit;
  }

  /**
   * When one of `free` slots may be taken before the others are refilled. Heavy callers wait until fewer have to be left: in the
   * end one, which they never take.
   */
  #freeAt({ free, refillsAt, isHeavy }: { free: number; refillsAt: number | undefined; isHeavy: boolean }): number {
    if (free <= 0) return Number.POSITIVE_INFINITY;
    const headroom = Math.floor(this.#limit * headroomShare);
    if (!isHeavy || headroom === 0 || free > headroom) return Number.NEGATIVE_INFINITY;
    return (refillsAt ?? 0) - ((free - 1) * this.#windowMs) / headroom;
  }

  /**
   * Adopts the platform's count. It may lack calls in flight, and answers can arrive out of order: within a window the count only
   * rises, and our own calls since its beginning are in it. The end is rounded up, so the earliest that was told is nearest to it;
   * as it never moves back, a call that was promised a slot in the next window gets it.
   */
  #adopt({ remaining, resetMs }: { remaining: number; resetMs: number }, now: number): void {
    if (resetMs === 0) this.#roundsDown = true;
    // At most a window, as more would be an epoch or an error.
    const endsAt = now + Math.min(resetMs + (this.#roundsDown ? roundingMs : 0), this.#windowMs);
    const isSameWindow = Math.abs(endsAt - this.#windowEndsAt) <= Math.min(sameWindowMs, this.#windowMs / 2);
    const isOver = now >= this.#windowEndsAt;
    if (isSameWindow && isOver) return; // a late answer, which knows nothing of the window that has begun
    const counted = Math.max(0, this.#limit - remaining);
    const spent = isOver || isSameWindow ? Math.max(counted, slotsOf(this.#stillSpent(now))) : counted + this.#inFlight;
    this.#windowEndsAt = isSameWindow ? Math.min(endsAt, this.#windowEndsAt) : endsAt;
    // An answer that arrives during a closure belongs to a call from before it, and does not end it.
    if (now >= this.#closedUntil) {
      this.#spacingMs = 0;
      this.#opensAt = Math.min(this.#opensAt, now + this.#spacingAfter(now));
    }
    this.#spent = [{ at: this.#windowEndsAt, slots: spent }];
  }

  /** When a slot that is spent now comes free. A call so near the end of the platform's window may get there in the next one. */
  #releaseAt(now: number): number {
    return now + 2 * roundingMs < this.#windowEndsAt ? this.#windowEndsAt : now + this.#windowMs;
  }

  #spacingAfter(start: number): number {
    const cautiousMs = this.#caution > 0 ? this.#burstSpacingMs : 0;
    if (this.#isInDoubt(start)) return this.#windowMs / this.#paceAt(start);
    return Math.max(cautiousMs, start < this.#closedUntil + this.#windowMs ? this.#spacingMs : 0);
  }

  #isInDoubt(at: number): boolean {
    return this.#doubt !== undefined && this.#paceAt(at) < this.#limit;
  }

  /** In calls per window, while the headers are not believed. */
  #paceAt(at: number): number {
    const { pace, since } = this.#doubt ?? { pace: this.#limit, since: at };
    return pace + (increase * this.#limit * (at - since)) / this.#windowMs;
  }

  get #heavySpacingMs(): number {
    return Math.min(this.#burstSpacingMs, this.#windowMs / (this.#limit * heavyHaste));
  }

  /** The slots that are not free, earliest release first. */
  #stillSpent(now: number): Release[] {
    const kept = this.#spent.findIndex(({ at }) => at > now);
    this.#spent.splice(0, kept < 0 ? this.#spent.length : kept);
    return this.#spent;
  }
}

/** When calls may start, one after the other. Heavy callers leave some slots free. */
export interface Schedule {
  /** When the next call may start. */
  next(isHeavy?: boolean): number;
  /** The same, and takes its slot: the next question is about the call after it. */
  take(isHeavy?: boolean): number;
}

/** `slots` slots come free at `at`. */
interface Release {
  at: number;
  slots: number;
}

function slotsOf(releases: readonly Release[]): number {
  return releases.reduce((sum, { slots }) => sum + slots, 0);
}
