import { asRankdError, type RankdError } from '../../base/errors.ts';
import type { AccountName, BudgetLedger, CallContext, Clock, Pace } from '../../ports/index.ts';
import {
  type Account,
  accepted,
  close,
  contradicted,
  countsAsHeavy,
  finish,
  giveBack,
  isAtEase,
  left,
  openAccount,
  type Schedule,
  schedule,
  startFull,
  startLate,
  startReserved,
} from './budget.ts';
import { defaultMaxInFlight, endedWhileWaiting, type Gate, type GateOptions, hopeless, tooLate } from './gate.ts';
import { GateFigures } from './gate-figures.ts';
import { type Ask, grant, waitingElsewhere } from './grant.ts';
import type { RateReading } from './retry-after.ts';
import { hasArrived, type QueuedCall, queuedCall, type ReservedSlot, WaitQueue } from './wait-queue.ts';

export interface SharedGateOptions extends GateOptions {
  /** The account's name in the ledger. */
  operation: string;
  clock: Clock;
  ledger: BudgetLedger;
  /** Who asks, as the ledger tells nodes apart. */
  node: string;
}

/** What is known of a call that waits. */
interface Waiting {
  lane: string;
  kind: Ask['kind'];
  isBegun: boolean;
  /** What the call starts with, or was asked for. */
  slot: SharedSlot;
}

/** A slot that is spent, for a call that may come until `deadlineAt`. */
interface SharedSlot extends ReservedSlot {
  /** When it comes free, on the ledger's time. */
  at: number;
  isOver: boolean;
}

/** What another node told is not older than this, if a call with a slot starts without asking, or one that has none is refused. */
const freshMs = 250;
/** While somebody waits, the ledger is asked at least this often: it has to hear that somebody waits. */
const maxPauseMs = 1_000;
/** Other nodes are first, though slots are free: how soon to ask again. It doubles each time. */
const secondTryMs = 20;
const maxSecondTryMs = 160;
/** A call that starts this long after it was granted counts from its start. */
const maxStartMs = 10;
/** How soon to ask a ledger again that did not answer. */
const afterFailureMs = 250;
/** Slots are scarce if fewer than this share of a window's is free. */
const scarceShare = 0.1;
/** So much is kept of what a ledger that does not answer has to be told. */
const maxNews = 2_000;

/**
 * The gate of a node that shares the budget with others. It keeps its own line; the ledger says how many of those in it may start. What the
 * platform says is told to the ledger, and holds for all. One question to the ledger is under way at a time: what comes meanwhile is in the next.
 */
export class SharedGate implements Gate {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #ledger: BudgetLedger;
  readonly #node: string;
  readonly #account: AccountName<Account>;
  readonly #maxInFlight: number;
  readonly #queue = new WaitQueue();
  readonly #waiting = new Map<QueuedCall, Waiting>();
  readonly #figures = new GateFigures();
  /** The account as it was seen last, with what this node did since; and how far the ledger's time was ahead of `Clock.monotonic()`. */
  #seen: { account: Account; at: number; aheadMs: number };
  /** What the ledger has yet to hear. */
  #news: Array<(account: Account) => void> = [];
  #asking: Promise<void> | undefined;
  #hasMore = false;
  #saidWaiting = 0;
  #triesInVain = 0;
  #isFailing = false;
  #isEnded = false;
  #inFlight = 0;
  #timer: AbortController | undefined;

  constructor(options: SharedGateOptions) {
    const { name, operation, limit, windowMs = 60_000, burstSpacingMs = 0, clock, ledger, node } = options;
    this.#name = name;
    this.#clock = clock;
    this.#ledger = ledger;
    this.#node = node;
    this.#maxInFlight = options.maxInFlight ?? defaultMaxInFlight;
    const fresh = () => openAccount({ limit, windowMs, burstSpacingMs });
    this.#account = {
      operation,
      open({ now, known, lastChangeAt = Number.NEGATIVE_INFINITY }) {
        const account = known ?? fresh();
        if (known !== undefined || now - lastChangeAt < account.windowMs) startFull(account, now);
        return account;
      },
    };
    this.#seen = { account: fresh(), at: Number.NEGATIVE_INFINITY, aheadMs: clock.now() - clock.monotonic() };
  }

  get refusals(): number {
    return this.#figures.refusals;
  }

  get answerMs(): number {
    return this.#figures.answerMs;
  }

  get isScarce(): boolean {
    const { account, at } = this.#seen;
    return at === Number.NEGATIVE_INFINITY || left(account, this.#ledgerNow) < account.limit * scarceShare;
  }

  enter(call: CallContext, slot?: ReservedSlot): Promise<void> {
    if (call.signal.aborted) return Promise.reject(tooLate(this.#name, this.#waitMs()));
    const reserved = slot !== undefined && isShared(slot) && this.#use(slot) ? slot : undefined;
    if (reserved !== undefined && this.#startsAtOnce) {
      this.#inFlight += 1;
      this.#figures.admitted();
      this.#startReserved(reserved);
      return Promise.resolve();
    }
    const isCounted = reserved === undefined && call.reservation === undefined;
    return this.#wait(call, {
      lane: call.lane,
      kind: reserved === undefined ? 'start' : 'reserved',
      isBegun: call.reservation !== undefined,
      isHeavy: isCounted && this.#countsAsHeavy(call.lane),
      slot: reserved ?? { deadlineAt: call.deadlineAt, at: 0, isOver: true },
    });
  }

  async reserve(bounds: Pick<CallContext, 'deadlineAt' | 'lane' | 'signal'>): Promise<ReservedSlot> {
    const { lane, deadlineAt } = bounds;
    const slot: SharedSlot = { deadlineAt, at: 0, isOver: false };
    await this.#wait(bounds, { lane, kind: 'reserve', isBegun: false, isHeavy: this.#countsAsHeavy(lane), slot });
    return slot;
  }

  release(slot: ReservedSlot): void {
    if (!isShared(slot) || slot.isOver) return;
    slot.isOver = true;
    this.#giveBack(slot);
  }

  leave(reading: RateReading = {}): void {
    this.#inFlight -= 1;
    this.#figures.told(reading, this.#clock.monotonic());
    this.#tell((account, at) => finish(account, reading, at));
  }

  leaveRefused(reading: RateReading): boolean {
    const toldLast = this.#figures.toldLeft(this.#clock.monotonic());
    this.leave(reading);
    if ((reading.remaining ?? 0) > 0) this.#tell(contradicted);
    return (reading.remaining ?? toldLast) > 0;
  }

  answered(ms: number): void {
    this.#figures.answered(ms);
  }

  accepted(): void {
    this.#figures.refusals = 0;
    if (this.#seen.account.caution > 0) this.#tell(accepted);
  }

  close(ms: number): void {
    this.#figures.refusals += 1;
    this.#tell((account, at) => close(account, ms, at));
  }

  pace(): Omit<Pace, 'operation'> {
    const { account } = this.#seen;
    const now = this.#ledgerNow;
    const leftHere = Math.max(0, left(account, now) - waitingElsewhere(account, now, this.#node));
    return {
      ...{ limit: account.limit, left: leftHere, waiting: this.#waiting.size },
      ...this.#figures.admissions,
    };
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    this.#timer?.abort();
    this.#update();
    await this.#asking;
  }

  /** Joins the line; resolves once it is granted. */
  #wait(
    call: Pick<CallContext, 'deadlineAt' | 'signal'>,
    { isHeavy, ...waiting }: Waiting & { isHeavy: boolean },
  ): Promise<void> {
    const since = this.#clock.monotonic();
    const { call: queued, admission } = queuedCall(call, isHeavy, {
      onAdmit: () => this.#figures.admitted(this.#clock.monotonic() - since),
      onAbort: (aborted) => {
        this.#leaveLine(aborted);
        this.#update();
        return endedWhileWaiting(this.#name, this.#waitMs(), call.signal.reason);
      },
    });
    if (waiting.kind === 'reserved') this.#queue.reserve(queued);
    else this.#queue.push(waiting.lane, queued);
    this.#waiting.set(queued, waiting);
    this.#update();
    return admission;
  }

  /** Who leaves without having started gives a slot back. */
  #leaveLine(call: QueuedCall): void {
    this.#queue.remove(call);
    const waiting = this.#waiting.get(call);
    this.#waiting.delete(call);
    if (waiting?.kind === 'reserved') this.#giveBack(waiting.slot);
  }

  /** Takes a slot that is still good. */
  #use(slot: SharedSlot): boolean {
    if (slot.isOver) return false;
    slot.isOver = true;
    if (this.#clock.monotonic() <= slot.deadlineAt) return true;
    this.#giveBack(slot);
    return false;
  }

  get #startsAtOnce(): boolean {
    return this.#isFresh && this.#hasFreeConnection && isAtEase(this.#seen.account, this.#ledgerNow);
  }

  #startReserved({ at: slotAt }: SharedSlot): void {
    this.#tell((account, now) => startReserved(account, now, { by: this.#node, at: slotAt }));
  }

  #giveBack({ at }: SharedSlot): void {
    this.#tell((account) => giveBack(account, { by: this.#node, at }));
  }

  /** Counts a call of the lane. A lane stays heavy while heavy calls of it wait, so that none of its own overtakes them. */
  #countsAsHeavy(lane: string): boolean {
    const now = this.#ledgerNow;
    const asked = { lane, node: this.#node };
    this.#news.push((account) => void countsAsHeavy(account, now, asked));
    return countsAsHeavy(this.#seen.account, now, asked) || this.#queue.hasHeavy(lane);
  }

  /** Does to the account as it was seen what the ledger is told to do as soon as it can be asked. */
  #tell(news: (account: Account, at: number) => void): void {
    const at = this.#ledgerNow;
    news(this.#seen.account, at);
    this.#news.push((account) => news(account, at));
    if (this.#news.length > maxNews) this.#news.shift();
    this.#update();
  }

  #update(): void {
    if (this.#isEnded && this.#waiting.size > 0)
      for (const call of [...this.#waiting.keys()]) this.#refuse(call, tooLate(this.#name, 0));
    this.#refuseHopeless();
    if (this.#asking !== undefined) {
      this.#hasMore = true;
      return;
    }
    const isHeard = this.#news.length === 0 && this.#waiting.size === 0 && this.#saidWaiting === 0;
    if (isHeard || this.#isFailing) return;
    this.#asking = this.#ask().finally(() => {
      this.#asking = undefined;
      this.#setTimer();
    });
  }

  async #ask(): Promise<void> {
    await undefined; // what else comes in this turn goes along
    do {
      this.#hasMore = false;
      try {
        await this.#askOnce();
      } catch (error) {
        this.#fail(asRankdError(error));
        return;
      }
    } while (this.#hasMore);
  }

  async #askOnce(): Promise<void> {
    const news = this.#news;
    this.#news = [];
    const calls = this.#askable();
    const asks = calls.map((call) => this.#askOf(call));
    const demand = { node: this.#node, inFlight: this.#inFlight, waiting: this.#waiting.size };
    const { account, granted, now } = await this.#ledger
      .change(this.#account, (account, now) => {
        for (const tell of news) tell(account);
        return { account, now, granted: grant(account, now, { ...demand, asks }) };
      })
      .catch((error: unknown) => {
        this.#news.unshift(...news);
        throw error;
      });
    const at = this.#clock.monotonic();
    this.#seen = { account, at, aheadMs: this.#clock.now() - at };
    for (const tell of this.#news) tell(account);
    for (const [index, slotAt] of granted.entries()) this.#admit(calls[index], { ...asks[index], slotAt } as Ask, now);
    this.#refuseHopeless();
    this.#triesInVain = granted.length > 0 ? 0 : this.#triesInVain + 1;
    this.#saidWaiting = Math.max(0, demand.waiting - granted.length);
    if (this.#askable().length > 0 && granted.length === calls.length && calls.length > 0) this.#hasMore = true;
    if (this.#waiting.size === 0 && this.#saidWaiting > 0) this.#hasMore = true;
  }

  /** Those in the line who could be admitted if the budget allows it, in order. */
  #askable(): QueuedCall[] {
    let room = this.#maxInFlight - this.#inFlight;
    const calls: QueuedCall[] = [];
    for (const entry of this.#queue.inOrder()) {
      const waiting = hasArrived(entry) ? this.#waiting.get(entry) : undefined;
      if (waiting === undefined || !hasArrived(entry)) continue;
      if (waiting.kind !== 'reserve') room -= 1;
      if (room < 0) break;
      calls.push(entry);
    }
    return calls.slice(0, defaultMaxInFlight);
  }

  #askOf(call: QueuedCall): Ask {
    const { kind = 'start', isBegun = false, slot } = this.#waiting.get(call) ?? {};
    const until = this.#seen.aheadMs + call.deadlineAt;
    return { kind, isBegun, isHeavy: call.isHeavy, until, slotAt: slot?.at ?? 0 };
  }

  /** Admits a call that was granted what it asked for, unless it has left the line by now. */
  #admit(call: QueuedCall | undefined, { kind, slotAt }: Ask, grantedAt: number): void {
    const waiting = call && this.#waiting.get(call);
    if (call === undefined || waiting === undefined) {
      const slot = kind === 'reserve' ? { at: slotAt } : {};
      this.#tell((account) => giveBack(account, { by: this.#node, ...slot }));
      return;
    }
    this.#queue.remove(call);
    this.#waiting.delete(call);
    if (kind === 'reserve') waiting.slot.at = slotAt;
    else {
      this.#inFlight += 1;
      if (this.#ledgerNow - grantedAt > maxStartMs)
        this.#tell((account, at) => startLate(account, at, { by: this.#node }));
    }
    call.admit();
  }

  /** Nobody waits for a ledger that does not answer, but those whose change has begun. */
  #fail(error: RankdError): void {
    this.#isFailing = true;
    for (const [call, { isBegun }] of [...this.#waiting]) if (!isBegun) this.#refuse(call, error);
  }

  /** Nobody is refused for what other nodes have spent, as long as it is not known what they have given back since. */
  #refuseHopeless(): void {
    const { account, aheadMs } = this.#seen;
    const now = this.#clock.monotonic();
    const starts = this.#isFresh ? schedule(account, now + aheadMs) : atOnce(now + aheadMs);
    const own = {
      next: (isHeavy?: boolean) => starts.next(isHeavy) - aheadMs,
      take: (isHeavy?: boolean) => starts.take(isHeavy) - aheadMs,
    };
    const opensAt = Math.max(now, account.opensAt - aheadMs);
    const ownStart = (entry: ReservedSlot) =>
      hasArrived(entry) && this.#waiting.get(entry)?.kind === 'reserved' ? opensAt : undefined;
    for (const { entry, waitMs } of hopeless(this.#queue, own, now, ownStart))
      if (hasArrived(entry)) this.#refuse(entry, tooLate(this.#name, waitMs));
  }

  #refuse(call: QueuedCall, error: RankdError): void {
    this.#leaveLine(call);
    call.refuse(error);
  }

  #setTimer(): void {
    this.#timer?.abort();
    this.#timer = undefined;
    const isIdle = this.#waiting.size === 0 && (this.#news.length === 0 || !this.#isFailing);
    if (isIdle || this.#isEnded) return;
    this.#timer = new AbortController();
    this.#clock.sleep(this.#pauseMs(), this.#timer.signal).then(
      () => {
        this.#isFailing = false;
        this.#update();
      },
      () => undefined, // replaced by a later timer
    );
  }

  #pauseMs(): number {
    if (this.#isFailing) return afterFailureMs;
    const now = this.#clock.monotonic();
    const dueInMs = Math.min(...[...this.#queue.inOrder()].map(({ deadlineAt }) => deadlineAt - now + 1));
    const [first] = this.#queue.inOrder();
    const { account, aheadMs } = this.#seen;
    const startsInMs =
      schedule(account, now + aheadMs).next(first !== undefined && hasArrived(first) && first.isHeavy) - aheadMs - now;
    const soonestMs = this.#hasFreeConnection
      ? Math.max(startsInMs, Math.min(secondTryMs * 2 ** Math.max(0, this.#triesInVain - 1), maxSecondTryMs))
      : maxPauseMs;
    return Math.max(1, Math.min(soonestMs, dueInMs, maxPauseMs));
  }

  #waitMs(): number {
    return schedule(this.#seen.account, this.#ledgerNow).next() - this.#ledgerNow;
  }

  get #ledgerNow(): number {
    return this.#clock.monotonic() + this.#seen.aheadMs;
  }

  get #isFresh(): boolean {
    return this.#clock.monotonic() - this.#seen.at <= freshMs;
  }

  get #hasFreeConnection(): boolean {
    return this.#inFlight < this.#maxInFlight;
  }
}

/** As if nothing stood in the way. */
function atOnce(now: number): Schedule {
  return { next: () => now, take: () => now };
}

function isShared(slot: ReservedSlot): slot is SharedSlot {
  return 'isOver' in slot;
}
