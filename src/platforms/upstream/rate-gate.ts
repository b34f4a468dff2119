import type { AccountName, CallContext, Clock, Pace } from '../../ports/index.ts';
import {
  type Account,
  accepted,
  close,
  contradicted,
  countsAsHeavy,
  finish,
  left,
  openAccount,
  schedule,
  spend,
} from './budget.ts';
import {
  defaultMaxInFlight,
  endedWhileWaiting,
  type Gate,
  type GateOptions,
  hopeless,
  isHeavy,
  nextStart,
  tooLate,
} from './gate.ts';
import { GateFigures } from './gate-figures.ts';
import { MemoryLedger } from './memory-ledger.ts';
import type { RateReading } from './retry-after.ts';
import { hasArrived, queuedCall, type ReservedSlot, WaitQueue } from './wait-queue.ts';

export interface RateGateOptions extends GateOptions {
  clock: Clock;
  /** What keeps the account; one of its own unless given. */
  ledger?: MemoryLedger;
}

/** The gate of a process that has a budget of its own: whoever enters is admitted, or told when, at once. */
export class RateGate implements Gate {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #ledger: MemoryLedger;
  readonly #account: AccountName<Account>;
  readonly #queue = new WaitQueue();
  readonly #maxInFlight: number;
  readonly #figures = new GateFigures();
  #inFlight = 0;
  #timer: AbortController | undefined;

  constructor(options: RateGateOptions) {
    const { name, limit, windowMs = 60_000, burstSpacingMs = 0, clock } = options;
    this.#name = name;
    this.#clock = clock;
    this.#ledger = options.ledger ?? new MemoryLedger(clock);
    this.#account = { operation: name, open: () => openAccount({ limit, windowMs, burstSpacingMs }) };
    this.#maxInFlight = options.maxInFlight ?? defaultMaxInFlight;
  }

  get refusals(): number {
    return this.#figures.refusals;
  }

  enter(call: CallContext, slot?: ReservedSlot): Promise<void> {
    const since = this.#clock.monotonic();
    if (call.signal.aborted) return Promise.reject(tooLate(this.#name, this.#waitMs()));
    const isReserved = slot !== undefined && this.#queue.remove(slot);
    const isCounted = !isReserved && call.reservation === undefined;
    const { call: queued, admission } = queuedCall(call, isCounted && this.#countsAsHeavy(call.lane), {
      onAdmit: () => this.#figures.admitted(this.#clock.monotonic() - since),
      onAbort: (aborted) => {
        this.#queue.remove(aborted);
        this.#update();
        return endedWhileWaiting(this.#name, this.#waitMs(), call.signal.reason);
      },
    });
    if (isReserved) this.#queue.reserve(queued);
    else this.#queue.push(call.lane, queued);
    this.#update();
    return admission;
  }

  reserve({ deadlineAt, lane }: Pick<CallContext, 'deadlineAt' | 'lane'>): ReservedSlot {
    this.#update(); // refuses everyone who is late already
    const slot = { deadlineAt };
    this.#queue.reserve(slot);
    const lateByMs = this.#firstLateStart({ slot, isHeavy: this.#countsAsHeavy(lane) });
    if (lateByMs === undefined) return slot;
    this.#queue.remove(slot);
    throw tooLate(this.#name, lateByMs);
  }

  release(slot: ReservedSlot): void {
    if (this.#queue.remove(slot)) this.#update();
  }

  leave(reading: RateReading = {}): void {
    this.#end(reading);
    this.#update();
  }

  answered(ms: number): void {
    this.#figures.answered(ms);
  }

  get answerMs(): number {
    return this.#figures.answerMs;
  }

  /** Slots of several gates are reserved in one turn. */
  get isScarce(): boolean {
    return false;
  }

  accepted(): void {
    this.#figures.refusals = 0;
    this.#change(accepted);
  }

  pace(): Omit<Pace, 'operation'> {
    return {
      ...this.#change((account, now) => ({ limit: account.limit, left: left(account, now) })),
      waiting: [...this.#queue.inOrder()].filter(hasArrived).length,
      ...this.#figures.admissions,
    };
  }

  leaveRefused(reading: RateReading): boolean {
    const toldLast = this.#figures.toldLeft(this.#clock.monotonic());
    this.#end(reading);
    if ((reading.remaining ?? 0) > 0) this.#change(contradicted);
    return (reading.remaining ?? toldLast) > 0;
  }

  close(ms: number): void {
    this.#figures.refusals += 1;
    this.#change((account, now) => close(account, ms, now));
    this.#update();
  }

  async end(): Promise<void> {}

  #end(reading: RateReading): void {
    this.#inFlight -= 1;
    this.#figures.told(reading, this.#clock.monotonic());
    this.#change((account, now) => finish(account, reading, now));
  }

  #update(): void {
    this.#change((account, now) => {
      this.#refuseHopeless(account, now);
      while (this.#hasFreeConnection && this.#canAdmitNext(account, now)) {
        const call = this.#queue.shift();
        if (call === undefined) return;
        this.#inFlight += 1;
        spend(account, now, call);
        call.admit();
      }
      this.#setTimer(account, now);
    });
  }

  /** True if the next call can start now, and everyone with an earlier reservation can still start in time after it. */
  #canAdmitNext(account: Account, now: number): boolean {
    const next = this.#queue.next();
    if (next === undefined) return false;
    const starts = schedule(account, now);
    return (
      starts.take(isHeavy(next)) <= now &&
      this.#queue.reservedAhead().every(({ deadlineAt }) => starts.take() <= deadlineAt)
    );
  }

  /** Counts a call of the lane. A lane stays heavy while heavy calls of it wait, so that none of its own overtakes them. */
  #countsAsHeavy(lane: string): boolean {
    return this.#change((account, now) => countsAsHeavy(account, now, { lane })) || this.#queue.hasHeavy(lane);
  }

  /** Refuses every call that, as the queue stands now, would start after its deadline. Such a reservation lapses. */
  #refuseHopeless(account: Account, now: number): void {
    for (const { entry, waitMs } of hopeless(this.#queue, schedule(account, now), now)) {
      this.#queue.remove(entry);
      if (hasArrived(entry)) entry.refuse(tooLate(this.#name, waitMs));
    }
  }

  /** How long the first one in the queue waits that is too late, now that `slot` is in it. A heavy lane can't reserve what it must leave. */
  #firstLateStart(reserved: { slot: ReservedSlot; isHeavy: boolean }): number | undefined {
    return this.#change((account, now) => {
      const starts = schedule(account, now);
      for (const entry of this.#queue.inOrder()) {
        const startAt = starts.take(entry === reserved.slot ? reserved.isHeavy : isHeavy(entry));
        if (startAt > entry.deadlineAt) return startAt - now;
      }
      return undefined;
    });
  }

  #setTimer(account: Account, now: number): void {
    this.#timer?.abort();
    this.#timer = undefined;
    const next = this.#queue.next();
    if (next === undefined || !this.#hasFreeConnection) return; // the next call that leaves updates
    this.#timer = new AbortController();
    this.#clock.sleep(nextStart(schedule(account, now), next, now) - now, this.#timer.signal).then(
      () => this.#update(),
      () => undefined, // replaced by a later timer
    );
  }

  #waitMs(): number {
    return this.#change((account, now) => schedule(account, now).next() - now);
  }

  #change<Result>(change: (account: Account, now: number) => Result): Result {
    return this.#ledger.changeNow(this.#account, change);
  }

  get #hasFreeConnection(): boolean {
    return this.#inFlight < this.#maxInFlight;
  }
}
