import { RankdError } from '../../base/errors.ts';
import type { CallContext, Clock, Pace } from '../../ports/index.ts';
import { Budget } from './budget.ts';
import { FairShare, spareSlots } from './fair-share.ts';
import { hasCome, Line, type Place } from './line.ts';
import type { RateReading } from './retry-after.ts';
import { waiterFor } from './waiter.ts';

export interface RateGateOptions {
  /** What it lets through, as an error names it, e.g. `giving roles`. */
  name: string;
  /** Calls per window, until the platform's headers say otherwise. */
  limit: number;
  /** One minute unless given. */
  windowMs?: number;
  /** Calls that may be on their way at the same time. */
  maxAtOnce?: number;
  clock: Clock;
}

/** Each of as many callers as there may well be goes ahead at once where there is budget; a burst must not open hundreds of connections. */
const maxAtOnce = 64;

/**
 * Lets the calls of one operation through at the pace of the platform's budget: in order within a lane, in turn between lanes,
 * heavy ones after the others. A turn can be promised to a call that is to come: nobody who enters, or is promised a turn, after
 * that takes it away. What carries on a change that has begun (`call.room`) is never heavy.
 */
export class RateGate {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #budget: Budget;
  readonly #line = new Line();
  readonly #shares = new FairShare();
  readonly #maxAtOnce: number;
  #underWay = 0;
  #refusals = 0;
  #alarm: AbortController | undefined;
  #admitted = 0;
  #waitedMs = 0;

  constructor(options: RateGateOptions) {
    const { name, limit, windowMs = 60_000, clock } = options;
    this.#name = name;
    this.#clock = clock;
    this.#budget = new Budget({ limit, windowMs });
    this.#maxAtOnce = options.maxAtOnce ?? maxAtOnce;
  }

  /** How often in a row the platform asked to wait. */
  get refusals(): number {
    return this.#refusals;
  }

  /**
   * Resolves when the call may be sent; the caller must `leave` after it. Throws `platform_busy` as soon as it is clear that
   * its turn can't come before `call.deadlineAt`, and when `call.signal` is aborted; `platform_unavailable` where its turn
   * would be now and its time is over. `promised` is the turn it was promised, which is used up by this; without one, or
   * with one that is used up, it comes after all that were promised theirs.
   */
  enter(call: CallContext, promised?: Place): Promise<void> {
    const since = this.#clock.monotonic();
    if (call.signal.aborted) return Promise.reject(this.#tooLate(this.#budget.schedule(since).next() - since));
    const isPromised = promised !== undefined && this.#line.remove(promised);
    const isCounted = !isPromised && call.room === undefined;
    const { waiter, turn } = waiterFor(call, isCounted && this.#isHeavy(call.lane, since), {
      granted: () => {
        this.#admitted += 1;
        this.#waitedMs += this.#clock.monotonic() - since;
      },
      refused: () => {
        if (isCounted) this.#shares.forget(call.lane);
      },
      calledOff: (waiter) => {
        this.#line.remove(waiter);
        this.#update();
        return this.#calledOff(call.signal.reason);
      },
    });
    if (isPromised) this.#line.promise(waiter);
    else this.#line.push(call.lane, waiter);
    this.#update();
    return turn;
  }

  /**
   * Promises a turn before `deadlineAt` to a call that is to come; to be kept until the call enters with it or it is given
   * back. Throws `platform_busy` where it could not be kept together with those promised before, or would make one who waits late;
   * `platform_unavailable` where the deadline alone is in the way.
   */
  promise({ deadlineAt, lane }: Pick<CallContext, 'deadlineAt' | 'lane'>): Place {
    this.#update(); // nobody is late now
    const place = { deadlineAt };
    this.#line.promise(place);
    const now = this.#clock.monotonic();
    const lateTurnAt = this.#firstLateTurn(now, { place, isHeavy: this.#isHeavy(lane, now) });
    if (lateTurnAt === undefined) return place;
    this.#line.remove(place);
    this.#shares.forget(lane);
    throw this.#tooLate(lateTurnAt - now);
  }

  /** Does nothing where the call has entered. */
  giveBack(promised: Place): void {
    if (this.#line.remove(promised)) this.#update();
  }

  /** A call that was let in has ended, with what its answer said of the budget. */
  leave(reading: RateReading = {}): void {
    this.#underWay -= 1;
    this.#budget.settle(reading, this.#clock.monotonic());
    this.#update();
  }

  /** The platform carried a call out: it does not ask to wait any more. */
  accepted(): void {
    this.#refusals = 0;
  }

  pace(): Omit<Pace, 'operation'> {
    return {
      limit: this.#budget.limit,
      left: this.#budget.left(this.#clock.monotonic()),
      waiting: [...this.#line.inOrder()].filter(hasCome).length,
      admitted: this.#admitted,
      waitedMs: this.#waitedMs,
    };
  }

  /** Lets nobody in for `ms`: the platform asked for it. */
  close(ms: number): void {
    this.#refusals += 1;
    this.#budget.close(ms, this.#clock.monotonic());
    this.#update();
  }

  #update(): void {
    const now = this.#clock.monotonic();
    this.#refuseHopeless(now);
    while (this.#hasHands && this.#canNextStart(now)) {
      this.#underWay += 1;
      this.#budget.spend(now);
      this.#line.shift()?.grant();
    }
    this.#setAlarm(now);
  }

  /** True where the next who waits can start, and all who were promised an earlier turn still can after it. */
  #canNextStart(now: number): boolean {
    const next = this.#line.next();
    if (next === undefined) return false;
    const starts = this.#budget.schedule(now);
    return (
      starts.take(this.#spareOf(next)) <= now &&
      this.#line.keptAhead().every(({ deadlineAt }) => starts.take() <= deadlineAt)
    );
  }

  #isHeavy(lane: string, now: number): boolean {
    return this.#shares.exceeds(lane, now, this.#budget) || this.#line.hasHeavy(lane); // none passes those of the lane who wait
  }

  /** How many slots one who waits leaves to others. */
  #spareOf(place: Place): number {
    return hasCome(place) && place.isHeavy ? spareSlots(this.#budget) : 0;
  }

  /** Refuses everyone whose turn would come after their deadline, as the line stands now; a promise that can't be kept lapses. */
  #refuseHopeless(now: number): void {
    const starts = this.#budget.schedule(now);
    for (const place of [...this.#line.inOrder()]) {
      const spare = this.#spareOf(place);
      const turnAt = starts.next(spare);
      if (turnAt <= place.deadlineAt) {
        starts.take(spare);
      } else {
        this.#line.remove(place);
        if (hasCome(place)) place.refuse(this.#tooLate(turnAt - now));
      }
    }
  }

  /** The turn that would come too late, now that `place` is in the line; a heavy lane is promised nothing of what it leaves to others. */
  #firstLateTurn(now: number, { place, isHeavy }: { place: Place; isHeavy: boolean }): number | undefined {
    const starts = this.#budget.schedule(now);
    for (const each of this.#line.inOrder()) {
      const turnAt = starts.take(each === place && isHeavy ? spareSlots(this.#budget) : this.#spareOf(each));
      if (turnAt > each.deadlineAt) return turnAt;
    }
    return undefined;
  }

  #setAlarm(now: number): void {
    this.#alarm?.abort();
    this.#alarm = undefined;
    if (this.#line.next() === undefined || !this.#hasHands) return; // the next to leave looks again
    this.#alarm = new AbortController();
    this.#clock.sleep(this.#nextChange(now) - now, this.#alarm.signal).then(
      () => this.#update(),
      () => undefined, // set anew
    );
  }

  /** When more can start than now. */
  #nextChange(now: number): number {
    const starts = this.#budget.schedule(now);
    let start = starts.take();
    while (start <= now) start = starts.take();
    return start;
  }

  get #hasHands(): boolean {
    return this.#underWay < this.#maxAtOnce;
  }

  /** How one is refused whose turn would be in `waitMs`: where that is now, it is not the budget that has no room. */
  #tooLate(waitMs: number): RankdError {
    if (waitMs <= 0) {
      const message = `This request had no time left to ask the platform (${this.#name}); nothing was sent. Try again.`;
      return new RankdError('platform_unavailable', message);
    }
    const message = `The platform's budget for ${this.#name} has no room before this request's deadline. Try again a little later.`;
    return new RankdError('platform_busy', message, { retryAfterMs: Math.ceil(waitMs) });
  }

  #calledOff(cause: unknown): RankdError {
    const now = this.#clock.monotonic();
    const message = `The request ended while it waited for its turn in the platform's budget for ${this.#name}; nothing was sent.`;
    return new RankdError('platform_busy', message, {
      retryAfterMs: Math.max(1, Math.ceil(this.#budget.schedule(now).next() - now)),
      cause,
    });
  }
}
