import type { RankdError } from '../../base/errors.ts';
import type { SlotRequest } from './grant.ts';

/** A budget slot that was spent in advance, for a call that must start by `deadlineAt` (on `Clock.monotonic()`). */
export interface ReservedSlot {
  readonly deadlineAt: number;
  /** The slot's release time on the ledger's clock. */
  freeAt: number;
  /** True once the call has entered the gate or the slot has been released. */
  isUsed: boolean;
}

export interface QueuedCall extends Pick<SlotRequest, 'kind' | 'isHeavy' | 'isBegun'> {
  readonly lane: string;
  /** A time on `Clock.monotonic()`. */
  readonly deadlineAt: number;
  /** The slot that the call uses (`reserved`) or asks for (`reserve`). */
  readonly slot?: ReservedSlot | undefined;
  admit(): void;
  refuse(error: RankdError): void;
}

/**
 * Orders the waiting calls. Calls with a reserved slot come first, earliest deadline first (if any order lets all of
 * them start in time, this one does). Then come the other calls, with lanes taking turns, and last the calls of heavy
 * lanes, also taking turns.
 */
export class WaitQueue {
  readonly #reserved: QueuedCall[] = [];
  readonly #light = new FairQueue<QueuedCall>();
  readonly #heavy = new FairQueue<QueuedCall>();

  get size(): number {
    return this.#reserved.length + this.#light.size + this.#heavy.size;
  }

  push(call: QueuedCall): void {
    if (call.kind !== 'reserved') {
      (call.isHeavy ? this.#heavy : this.#light).push(call.lane, call);
      return;
    }
    const before = this.#reserved.findLastIndex(({ deadlineAt }) => deadlineAt <= call.deadlineAt);
    this.#reserved.splice(before + 1, 0, call);
  }

  /** Removes a call that is being admitted. Returns false if the call has already left the queue. */
  admit(call: QueuedCall): boolean {
    return this.#removeReserved(call) || this.#light.serve(call) || this.#heavy.serve(call);
  }

  /** Removes a call that gives up or is refused. Returns false if the call has already left the queue. */
  remove(call: QueuedCall): boolean {
    return this.#removeReserved(call) || this.#light.remove(call) || this.#heavy.remove(call);
  }

  hasHeavy(lane: string): boolean {
    return this.#heavy.has(lane);
  }

  *inOrder(): Generator<QueuedCall> {
    yield* this.#reserved;
    yield* this.#light.inOrder();
    yield* this.#heavy.inOrder();
  }

  #removeReserved(call: QueuedCall): boolean {
    const at = this.#reserved.indexOf(call);
    if (at >= 0) this.#reserved.splice(at, 1);
    return at >= 0;
  }
}

/**
 * First come, first served within a lane; lanes take turns. An item's round is fixed when the item is added, so
 * removing an item does not reorder the others.
 */
export class FairQueue<T> {
  /** Sorted by round. Each round has at most one item from each lane. */
  readonly #entries: Array<{ lane: string; item: T; round: number }> = [];
  /** The highest round of all items served so far. */
  #round = 0;

  get size(): number {
    return this.#entries.length;
  }

  has(lane: string): boolean {
    return this.#entries.some((entry) => entry.lane === lane);
  }

  push(lane: string, item: T): void {
    const last = this.#entries.findLast((entry) => entry.lane === lane);
    const round = (last?.round ?? this.#round) + 1;
    const before = this.#entries.findLastIndex((entry) => entry.round <= round);
    this.#entries.splice(before + 1, 0, { lane, item, round });
  }

  shift(): T | undefined {
    const [first] = this.#entries;
    if (first !== undefined) this.serve(first.item);
    return first?.item;
  }

  /** Removes an item whose turn has come. Returns false if it is not in the queue. */
  serve(item: T): boolean {
    const served = this.#remove(item);
    this.#round = Math.max(this.#round, served?.round ?? 0);
    return served !== undefined;
  }

  /** Removes an item without serving it. Returns false if it is not in the queue. */
  remove(item: T): boolean {
    return this.#remove(item) !== undefined;
  }

  *inOrder(): Generator<T> {
    for (const { item } of this.#entries) yield item;
  }

  #remove(item: T): { round: number } | undefined {
    const at = this.#entries.findIndex((entry) => entry.item === item);
    return at < 0 ? undefined : this.#entries.splice(at, 1)[0];
  }
}
