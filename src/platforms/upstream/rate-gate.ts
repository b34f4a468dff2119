import { RankdError } from '../../errors.ts';
import type { CallContext, Clock, Pace } from '../../ports.ts';
import { Budget } from './budget.ts';
import { FairQueue } from './fair-queue.ts';
import type { RateReading } from './retry-after.ts';

export interface RateGateOptions {
  /** What it lets through, as an error names it, e.g. `role assignments`. */
  name: string;
  /** Calls per window, until the platform's headers say otherwise. */
  limit: number;
  /** One minute unless given. */
  windowMs?: number;
  /** Calls that may be on their way at the same time. */
  mostAtOnce?: number;
  clock: Clock;
}

interface Waiter {
  call: CallContext;
  grant(): void;
  refuse(error: RankdError): void;
}

/** Each of as many callers as there may well be goes ahead at once where there is budget; a burst must not open hundreds of connections. */
const mostAtOnce = 64;

/** Lets the calls of one operation through at the pace of the platform's budget: in order within a lane, in turn between lanes. */
export class RateGate {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #budget: Budget;
  readonly #queue = new FairQueue<Waiter>();
  readonly #mostAtOnce: number;
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
    this.#mostAtOnce = options.mostAtOnce ?? mostAtOnce;
  }

  /** How often in a row the platform asked to wait. */
  get refusals(): number {
    return this.#refusals;
  }

  /**
   * Resolves when the call may be sent; the caller must `leave` after it. Throws `platform_busy` as soon as it is clear that
   * its turn can't come before `call.deadlineAt`, and when `call.signal` is aborted.
   */
  enter(call: CallContext): Promise<void> {
    if (call.signal.aborted) return Promise.reject(this.#calledOff(call.signal.reason));
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#queue.remove(waiter);
        reject(this.#calledOff(call.signal.reason));
        this.#update();
      };
      const settled = <A extends unknown[]>(settle: (...args: A) => void) => {
        return (...args: A) => {
          call.signal.removeEventListener('abort', onAbort);
          settle(...args);
        };
      };
      const since = this.#clock.monotonic();
      const grant = () => {
        this.#admitted += 1;
        this.#waitedMs += this.#clock.monotonic() - since;
        resolve();
      };
      const waiter: Waiter = { call, grant: settled(grant), refuse: settled(reject) };
      call.signal.addEventListener('abort', onAbort, { once: true });
      this.#queue.push(call.lane, waiter);
      this.#update();
    });
  }

  /** Throws `platform_busy` where a call that came now could not enter before `call.deadlineAt`. */
  checkRoom({ lane, deadlineAt }: Pick<CallContext, 'lane' | 'deadlineAt'>): void {
    const now = this.#clock.monotonic();
    const starts = this.#budget.starts(now);
    for (let ahead = this.#queue.countAhead(lane); ahead > 0; ahead -= 1) starts.next();
    const startsAt = starts.next().value;
    if (startsAt > deadlineAt) throw this.#noRoom(startsAt - now);
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
      waiting: [...this.#queue.inOrder()].length,
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
    while (!this.#queue.isEmpty && this.#hasHands && this.#nextStart(now) <= now) {
      this.#underWay += 1;
      this.#budget.spend(now);
      this.#queue.shift()?.grant();
    }
    this.#setAlarm(now);
  }

  /** Refuses everyone whose turn would come after their deadline, as the queue stands now. */
  #refuseHopeless(now: number): void {
    const starts = this.#budget.starts(now);
    let turnAt = starts.next().value;
    for (const waiter of [...this.#queue.inOrder()]) {
      if (turnAt <= waiter.call.deadlineAt) {
        turnAt = starts.next().value;
      } else {
        this.#queue.remove(waiter);
        waiter.refuse(this.#noRoom(turnAt - now));
      }
    }
  }

  #setAlarm(now: number): void {
    this.#alarm?.abort();
    this.#alarm = undefined;
    if (this.#queue.isEmpty || !this.#hasHands) return; // the next to leave looks again
    this.#alarm = new AbortController();
    this.#clock.sleep(this.#nextStart(now) - now, this.#alarm.signal).then(
      () => this.#update(),
      () => undefined, // set anew
    );
  }

  get #hasHands(): boolean {
    return this.#underWay < this.#mostAtOnce;
  }

  #nextStart(now: number): number {
    return this.#budget.starts(now).next().value;
  }

  #noRoom(waitMs: number): RankdError {
    const message = `The platform's budget for ${this.#name} has no room before this request's deadline. Try again a little later.`;
    return new RankdError('platform_busy', message, { retryAfterMs: Math.max(1, Math.ceil(waitMs)) });
  }

  #calledOff(cause: unknown): RankdError {
    const now = this.#clock.monotonic();
    const message = `The request ended while it waited for its turn in the platform's budget for ${this.#name}; nothing was sent.`;
    return new RankdError('platform_busy', message, {
      retryAfterMs: Math.max(1, Math.ceil(this.#nextStart(now) - now)),
      cause,
    });
  }
}
