import { asRankdError, RankdError } from '../../base/errors.ts';
import type { AccountName, BudgetLedger, CallContext, Clock, Pace } from '../../ports/index.ts';
import type { RateReading } from './answer.ts';
import {
  type Account,
  accepted,
  close,
  contradicted,
  countTowardLane,
  finish,
  isUnpaced,
  left,
  openAccount,
  returnSlot,
  type Schedule,
  schedule,
  spendAll,
  startLate,
  startReserved,
} from './budget.ts';
import { GateFigures } from './gate-figures.ts';
import { grant, type SlotRequest, waitingElsewhere } from './grant.ts';
import { limited } from './platform-error.ts';
import { type QueuedCall, type ReservedSlot, WaitQueue } from './wait-queue.ts';

export interface GateOptions {
  /** The name of the operation's account in the ledger. */
  operation: string;
  /** The operation's name in errors, e.g. `giving roles`. */
  name: string;
  /** The initial limit, in calls per window. The platform's headers can change it. */
  limit: number;
  windowMs?: number;
  maxInFlight?: number;
  burstSpacingMs?: number;
  clock: Clock;
  /** Stores the budget if several nodes share it. Without a ledger, this process has the whole budget to itself. */
  ledger?: BudgetLedger | undefined;
  /** Identifies this process in the ledger. */
  node: string;
}

type ReserveBounds = Pick<CallContext, 'deadlineAt' | 'lane' | 'signal'>;

/** Enough for normal concurrency, but prevents a burst from opening hundreds of connections. */
const defaultMaxInFlight = 64;
/**
 * A waiting call is refused unless its expected start leaves a margin before its deadline, because timers can fire
 * late. The margin is a tenth of the expected wait, but at most this.
 */
const maxMarginMs = 100;
/**
 * While its copy of the shared account is younger than this, the gate can start a call that has a reserved slot, or
 * refuse a call for lack of slots, without asking the ledger.
 */
const freshMs = 250;
/**
 * The longest pause between ledger requests while a call waits in this gate. Each request shows other nodes that the
 * call is still waiting.
 */
const maxPauseMs = 1_000;
/** The first pause if slots are free but belong to other nodes. It doubles with each retry. */
const retryMs = 20;
const maxRetryMs = 160;
/** If a call starts more than this after its grant, its slot is counted from the start instead of the grant. */
const maxStartMs = 10;
const afterFailureMs = 250;
const scarceShare = 0.1;
/** The maximum number of updates queued while the ledger does not respond. */
const maxPending = 2_000;

/**
 * Admits the calls of one operation as fast as the platform's budget allows. Calls with a reserved slot come first.
 * The others are admitted in order of arrival within a lane; lanes take turns, and heavy lanes come last. A call for a
 * change that has begun (`call.reservation` is set) never counts as heavy.
 *
 * Each gate has its own queue, and `grant` decides how many of its calls can start. If several nodes share the budget,
 * the account is stored in a ledger, and the gate works on a copy. At most one ledger request is in flight; calls that
 * arrive in the meantime join the next one.
 */
export class Gate {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #ledger: BudgetLedger | undefined;
  readonly #node: string;
  readonly #account: AccountName<Account>;
  readonly #maxInFlight: number;
  readonly #queue = new WaitQueue();
  readonly #figures = new GateFigures();
  /**
   * With a ledger, `account` is the copy of the ledger's account that was read at the time `at`, plus this node's
   * updates since then; without a ledger, it is the account itself. `aheadMs` is the ledger's clock minus
   * `Clock.monotonic()`.
   */
  #seen: { account: Account; at: number; aheadMs: number };
  #pending: Array<(account: Account) => void> = [];
  #granting: Promise<void> | undefined;
  #hasMore = false;
  #reportedWaiting = 0;
  #emptyRounds = 0;
  #isFailing = false;
  #isEnded = false;
  #inFlight = 0;
  #timer: AbortController | undefined;

  constructor(options: GateOptions) {
    const { name, operation, limit, windowMs = 60_000, burstSpacingMs = 0, clock, ledger, node } = options;
    this.#name = name;
    this.#clock = clock;
    this.#ledger = ledger;
    this.#node = node;
    this.#maxInFlight = options.maxInFlight ?? defaultMaxInFlight;
    const isExclusive = ledger === undefined;
    const fresh = () => openAccount({ limit, windowMs, burstSpacingMs, isExclusive });
    this.#account = {
      operation,
      open({ now, known, lastChangeAt = Number.NEGATIVE_INFINITY }) {
        const account = known ?? fresh();
        if (known !== undefined || now - lastChangeAt < account.windowMs) spendAll(account, now);
        return account;
      },
    };
    this.#seen = isExclusive
      ? { account: fresh(), at: clock.monotonic(), aheadMs: 0 }
      : { account: fresh(), at: Number.NEGATIVE_INFINITY, aheadMs: clock.now() - clock.monotonic() };
  }

  /** The number of consecutive pauses that the platform asked for. */
  get refusals(): number {
    return this.#figures.refusals;
  }

  get answerMs(): number {
    return this.#figures.answerMs;
  }

  /** True if a reservation may have to wait for a slot. */
  get isScarce(): boolean {
    const { account, at } = this.#seen;
    return at === Number.NEGATIVE_INFINITY || left(account, this.#ledgerNow) < account.limit * scarceShare;
  }

  /**
   * Resolves when the call can be sent; the caller must call `leave` when it ends. A call with a usable `slot` uses it,
   * and is admitted before all calls without one. Throws `platform_busy` as soon as the call can no longer start before
   * `call.deadlineAt`, or if `call.signal` is aborted while the call waits; `platform_unavailable` if a slot is free
   * but no time is left; and the ledger's error if the ledger does not respond, unless the call belongs to a change
   * that has begun.
   */
  enter(call: CallContext, slot?: ReservedSlot): Promise<void> {
    if (call.signal.aborted) return Promise.reject(tooLate(this.#name, this.#waitMs));
    const reserved = slot !== undefined && this.#use(slot) ? slot : undefined;
    if (reserved !== undefined && this.#startsAtOnce) {
      this.#inFlight += 1;
      this.#figures.noteAdmission();
      this.#update((account, now) => startReserved(account, now, { by: this.#node, at: reserved.freeAt }));
      return Promise.resolve();
    }
    const isBegun = call.reservation !== undefined;
    const isHeavy = reserved === undefined && !isBegun && this.#countTowardLane(call.lane);
    return this.#wait(call, { kind: reserved === undefined ? 'start' : 'reserved', isBegun, isHeavy, slot: reserved });
  }

  /**
   * Waits for a free slot, and takes it on behalf of a later call. The caller must pass the slot to `enter` before
   * `deadlineAt`, or release it. Throws `platform_busy` as soon as no slot can become free in time, or if `signal` is
   * aborted; `platform_unavailable` if a slot is free but the deadline has passed; and the ledger's error if the ledger
   * does not respond.
   */
  async reserve(bounds: ReserveBounds): Promise<ReservedSlot> {
    const slot = { deadlineAt: bounds.deadlineAt, freeAt: 0, isUsed: false };
    const isHeavy = this.#countTowardLane(bounds.lane);
    await this.#wait(bounds, { kind: 'reserve', isBegun: false, isHeavy, slot });
    return slot;
  }

  /** Throws the same error as `reserve` if no slot would become free in time even with an empty queue. */
  refuseIfLate({ deadlineAt }: Pick<CallContext, 'deadlineAt'>): void {
    if (this.#isFresh && this.#clock.monotonic() + this.#waitMs > deadlineAt) throw tooLate(this.#name, this.#waitMs);
  }

  release(slot: ReservedSlot): void {
    if (slot.isUsed) return;
    slot.isUsed = true;
    this.#return(slot);
  }

  /** Records the end of an admitted call and the rate limit that its response reported. */
  leave(reading: RateReading = {}): void {
    this.#inFlight -= 1;
    this.#figures.noteReading(reading, this.#clock.monotonic());
    this.#update((account, now) => finish(account, reading, now));
  }

  /**
   * Records the end of a call that the platform refused with 429. Returns true if the platform's own count had calls
   * left. If the 429 response itself reports remaining calls, also puts that count in doubt.
   */
  leaveRefused(reading: RateReading): boolean {
    const remainingBefore = this.#figures.remaining(this.#clock.monotonic());
    this.leave(reading);
    if ((reading.remaining ?? 0) > 0) this.#update(contradicted);
    return (reading.remaining ?? remainingBefore) > 0;
  }

  answered(ms: number): void {
    this.#figures.noteAnswer(ms);
  }

  accepted(): void {
    this.#figures.refusals = 0;
    if (this.#seen.account.caution > 0) this.#update(accepted);
  }

  /** Stops admitting calls for `ms`, because the platform asked for a pause. */
  close(ms: number): void {
    this.#figures.refusals += 1;
    this.#update((account, now) => close(account, ms, now));
  }

  pace(): Omit<Pace, 'operation'> {
    const { account } = this.#seen;
    const now = this.#ledgerNow;
    const leftHere = Math.max(0, left(account, now) - waitingElsewhere(account, now, this.#node));
    return { limit: account.limit, left: leftHere, waiting: this.#queue.size, ...this.#figures.admissions };
  }

  /**
   * Refuses all waiting calls and any that arrive later. Resolves once the ledger has all updates or has failed to
   * respond.
   */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#timer?.abort();
    this.#grantSoon();
    await this.#granting;
  }

  #wait(
    { lane, deadlineAt, signal }: ReserveBounds,
    request: Pick<QueuedCall, 'kind' | 'isBegun' | 'isHeavy' | 'slot'>,
  ): Promise<void> {
    const { promise: admission, resolve, reject } = Promise.withResolvers<void>();
    const since = this.#clock.monotonic();
    const call: QueuedCall = {
      ...{ lane, deadlineAt, ...request },
      admit: () => {
        signal.removeEventListener('abort', abort);
        this.#figures.noteWait(this.#clock.monotonic() - since);
        if (call.kind !== 'reserve') this.#figures.noteAdmission();
        resolve();
      },
      refuse: (error) => {
        signal.removeEventListener('abort', abort);
        reject(error);
      },
    };
    const abort = () => {
      this.#refuse(call, endedWhileWaiting(this.#name, this.#waitMs, signal.reason));
      this.#grantSoon();
    };
    signal.addEventListener('abort', abort, { once: true });
    this.#queue.push(call);
    this.#grantSoon();
    return admission;
  }

  #refuse(call: QueuedCall, error: RankdError): void {
    if (!this.#queue.remove(call)) return;
    call.refuse(error);
    if (call.kind === 'reserved' && call.slot !== undefined) this.#return(call.slot);
  }

  /** Marks a reserved slot as used. Returns false if it was already used or has expired. */
  #use(slot: ReservedSlot): boolean {
    if (slot.isUsed) return false;
    if (this.#clock.monotonic() > slot.deadlineAt) {
      this.release(slot);
      return false;
    }
    slot.isUsed = true;
    return true;
  }

  #return({ freeAt }: ReservedSlot): void {
    this.#update((account) => returnSlot(account, { by: this.#node, at: freeAt }));
  }

  /**
   * Counts a call toward its lane. Returns true if the lane is heavy. A lane stays heavy while any of its heavy calls
   * wait, so that no later call in the lane overtakes them.
   */
  #countTowardLane(lane: string): boolean {
    const call = { lane, node: this.#node };
    return this.#apply((account, now) => countTowardLane(account, now, call)) || this.#queue.hasHeavy(lane);
  }

  #update(update: (account: Account, now: number) => void): void {
    this.#apply(update);
    this.#grantSoon();
  }

  /** Updates the local copy of the account now, and the ledger's account with the next request. */
  #apply<Result>(update: (account: Account, now: number) => Result): Result {
    const now = this.#ledgerNow;
    if (this.#ledger !== undefined) {
      this.#pending.push((account) => void update(account, now));
      if (this.#pending.length > maxPending) this.#pending.shift();
    }
    return update(this.#seen.account, now);
  }

  /**
   * Refuses calls that can't start in time, and requests slots for the others once any request in flight has finished.
   */
  #grantSoon(): void {
    if (this.#isEnded) for (const call of [...this.#queue.inOrder()]) this.#refuse(call, tooLate(this.#name, 0));
    this.#refuseLate();
    if (this.#granting !== undefined) {
      this.#hasMore = true;
      return;
    }
    const isIdle = this.#pending.length === 0 && this.#queue.size === 0 && this.#reportedWaiting === 0;
    if (!isIdle && !this.#isFailing) this.#granting = this.#grantAll();
  }

  async #grantAll(): Promise<void> {
    await undefined; // lets calls made in the same tick join the request
    try {
      do {
        this.#hasMore = false;
        await this.#grantOnce();
      } while (this.#hasMore);
    } catch (error) {
      this.#fail(asRankdError(error));
    }
    this.#granting = undefined;
    this.#setTimer();
  }

  async #grantOnce(): Promise<void> {
    const calls = this.#startable();
    const requests = calls.map((call) => this.#slotRequestOf(call));
    const demand = { node: this.#node, inFlight: this.#inFlight, waiting: this.#queue.size };
    const { account, now, granted } = await this.#change((account, now) => ({
      ...{ account, now },
      granted: grant(account, now, { ...demand, requests }),
    }));
    if (this.#ledger !== undefined) {
      const at = this.#clock.monotonic();
      this.#seen = { account, at, aheadMs: this.#clock.now() - at };
      for (const update of this.#pending) update(account);
    }
    for (const [index, freeAt] of granted.entries()) this.#admit(calls[index], { freeAt, grantedAt: now });
    this.#refuseLate();
    this.#emptyRounds = granted.length > 0 ? 0 : this.#emptyRounds + 1;
    this.#reportedWaiting = Math.max(0, demand.waiting - granted.length);
    const areAllGranted = calls.length > 0 && granted.length === calls.length;
    if (areAllGranted && this.#startable().length > 0) this.#hasMore = true;
    if (this.#queue.size === 0 && this.#reportedWaiting > 0) this.#hasMore = true;
  }

  /**
   * Applies the pending updates and `change` to the ledger's account; without a ledger, applies `change` to the local
   * one.
   */
  async #change<Result>(change: (account: Account, now: number) => Result): Promise<Result> {
    if (this.#ledger === undefined) return change(this.#seen.account, this.#ledgerNow);
    const pending = this.#pending;
    this.#pending = [];
    try {
      return await this.#ledger.change(this.#account, (account, now) => {
        for (const update of pending) update(account);
        return change(account, now);
      });
    } catch (error) {
      this.#pending.unshift(...pending);
      throw error;
    }
  }

  /** Returns, in order, the calls that can be admitted if the budget allows it. */
  #startable(): QueuedCall[] {
    let room = this.#maxInFlight - this.#inFlight;
    const calls: QueuedCall[] = [];
    for (const call of this.#queue.inOrder()) {
      if (call.kind !== 'reserve') room -= 1;
      if (room < 0 || calls.length === defaultMaxInFlight) break;
      calls.push(call);
    }
    return calls;
  }

  #slotRequestOf({ kind, isBegun, isHeavy, deadlineAt, slot }: QueuedCall): SlotRequest {
    return { kind, isBegun, isHeavy, until: this.#seen.aheadMs + deadlineAt, slotAt: slot?.freeAt ?? 0 };
  }

  /** Admits a call that was granted its slot. If the call has already left the queue, returns the slot instead. */
  #admit(call: QueuedCall | undefined, { freeAt, grantedAt }: { freeAt: number; grantedAt: number }): void {
    if (call === undefined) return;
    const by = this.#node;
    if (!this.#queue.admit(call)) {
      this.#update((account) => returnSlot(account, call.kind === 'reserve' ? { by, at: freeAt } : { by }));
      return;
    }
    if (call.kind !== 'reserve') {
      this.#inFlight += 1;
      if (this.#ledgerNow - grantedAt > maxStartMs) this.#update((account, now) => startLate(account, now, { by }));
    } else if (call.slot !== undefined) call.slot.freeAt = freeAt;
    call.admit();
  }

  /** Refuses all waiting calls after the ledger fails to respond, except those of changes that have begun. */
  #fail(error: RankdError): void {
    this.#isFailing = true;
    for (const call of [...this.#queue.inOrder()]) if (!call.isBegun) this.#refuse(call, error);
  }

  /** Refuses every call that would start after its deadline if the queue stays as it is. */
  #refuseLate(): void {
    if (this.#queue.size === 0) return;
    const now = this.#ledgerNow;
    const starts = this.#isFresh ? schedule(this.#seen.account, now) : allAtOnce(now);
    for (const call of [...this.#queue.inOrder()]) {
      const hasSlot = call.kind === 'reserved';
      const startsInMs = (hasSlot ? Math.max(now, this.#seen.account.opensAt) : starts.next(call.isHeavy)) - now;
      const marginMs = hasSlot ? 0 : Math.min(maxMarginMs, startsInMs / 10);
      const leftMs = call.deadlineAt - this.#clock.monotonic();
      if (startsInMs + marginMs > leftMs) this.#refuse(call, tooLate(this.#name, startsInMs));
      else if (!hasSlot) starts.take(call.isHeavy);
    }
  }

  #setTimer(): void {
    this.#timer?.abort();
    this.#timer = undefined;
    const isIdle = this.#queue.size === 0 && (this.#pending.length === 0 || !this.#isFailing);
    if (isIdle || this.#isEnded) return;
    this.#timer = new AbortController();
    this.#clock.sleep(this.#pauseMs(), this.#timer.signal).then(
      () => {
        this.#isFailing = false;
        this.#grantSoon();
      },
      () => undefined, // a newer timer has replaced this one, or the gate has ended
    );
  }

  #pauseMs(): number {
    if (this.#isFailing) return afterFailureMs;
    const { isExclusive = false, opensAt } = this.#seen.account;
    const [first] = this.#queue.inOrder();
    const startsAt = first?.kind === 'reserved' ? opensAt : this.#schedule.next(first?.isHeavy);
    const othersMs = isExclusive ? 0 : Math.min(retryMs * 2 ** Math.max(0, this.#emptyRounds - 1), maxRetryMs);
    const startMs = this.#hasFreeConnection ? Math.max(startsAt - this.#ledgerNow, othersMs) : Number.POSITIVE_INFINITY;
    const firstDeadlineAt = Math.min(...[...this.#queue.inOrder()].map(({ deadlineAt }) => deadlineAt));
    const dueMs = firstDeadlineAt - this.#clock.monotonic() + 1;
    return Math.max(1, Math.min(startMs, dueMs, isExclusive ? Number.POSITIVE_INFINITY : maxPauseMs));
  }

  get #startsAtOnce(): boolean {
    return this.#isFresh && this.#hasFreeConnection && isUnpaced(this.#seen.account, this.#ledgerNow);
  }

  get #schedule(): Schedule {
    return schedule(this.#seen.account, this.#ledgerNow);
  }

  get #waitMs(): number {
    return this.#schedule.next() - this.#ledgerNow;
  }

  get #ledgerNow(): number {
    return this.#clock.monotonic() + this.#seen.aheadMs;
  }

  /**
   * False if the copy of the account may be stale. Calls are then not refused for lack of slots, because other nodes
   * may have returned some.
   */
  get #isFresh(): boolean {
    return this.#ledger === undefined || this.#clock.monotonic() - this.#seen.at <= freshMs;
  }

  get #hasFreeConnection(): boolean {
    return this.#inFlight < this.#maxInFlight;
  }
}

function allAtOnce(now: number): Schedule {
  return { next: () => now, take: () => now };
}

/**
 * Returns the error for a call that can't start before its deadline. A `waitMs` of 0 means that a slot is free and the
 * call has simply run out of time.
 */
function tooLate(name: string, waitMs: number): RankdError {
  if (waitMs > 0) return limited(waitMs, name);
  const message = `This request had no time left to call Roblox (${name}); nothing was sent. Try again.`;
  return new RankdError('platform_unavailable', message);
}

/** Returns the error for a waiting call whose signal was aborted. The next call could start in `waitMs`. */
function endedWhileWaiting(name: string, waitMs: number, cause: unknown): RankdError {
  const message = `The request ended while it was waiting for Roblox's rate limit (${name}); nothing was sent.`;
  return new RankdError('platform_busy', message, { retryAfterMs: Math.max(1, Math.ceil(waitMs)), cause });
}
