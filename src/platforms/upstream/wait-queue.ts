import type { RankdError } from '../../base/errors.ts';
import type { CallContext } from '../../ports/index.ts';
import { FairQueue } from './fair-queue.ts';

/** A slot of the budget that is kept for a call which has not arrived yet. */
export interface ReservedSlot {
  readonly deadlineAt: number;
}

/** A call that has arrived and waits. */
export interface QueuedCall extends ReservedSlot {
  /** True if its lane has asked for much already: calls of other lanes go first. */
  isHeavy: boolean;
  admit(): void;
  refuse(error: RankdError): void;
}

/**
 * Everyone who is still to be admitted, in this order: first the reserved slots and the calls that arrived for one, earliest
 * deadline first (if any order lets all of them start in time, this one does); then the other calls, fairly between lanes;
 * last the calls of heavy lanes, fairly as well.
 */
export class WaitQueue {
  readonly #reserved: ReservedSlot[] = [];
  readonly #light = new FairQueue<QueuedCall>();
  readonly #heavy = new FairQueue<QueuedCall>();

  /** Adds a reserved slot, or the call that has arrived for one. */
  reserve(slot: ReservedSlot): void {
    const before = this.#reserved.findLastIndex(({ deadlineAt }) => deadlineAt <= slot.deadlineAt);
    this.#reserved.splice(before + 1, 0, slot);
  }

  push(lane: string, call: QueuedCall): void {
    (call.isHeavy ? this.#heavy : this.#light).push(lane, call);
  }

  /** Takes out the first call that has arrived. */
  shift(): QueuedCall | undefined {
    const call = this.#reserved.find(hasArrived);
    if (call === undefined) return this.#light.shift() ?? this.#heavy.shift();
    this.remove(call);
    return call;
  }

  /** Takes out a reserved slot or a call. False if it is not in the queue, or no longer. */
  remove(entry: ReservedSlot): boolean {
    const at = this.#reserved.indexOf(entry);
    if (at >= 0) this.#reserved.splice(at, 1);
    return at >= 0 || (hasArrived(entry) && (this.#light.remove(entry) || this.#heavy.remove(entry)));
  }

  isReserved(entry: ReservedSlot): boolean {
    return this.#reserved.includes(entry);
  }

  hasHeavy(lane: string): boolean {
    return this.#heavy.has(lane);
  }

  /** The first call that has arrived. */
  next(): QueuedCall | undefined {
    for (const entry of this.inOrder()) if (hasArrived(entry)) return entry;
    return undefined;
  }

  /** The reserved slots before the first call that has arrived. */
  reservedAhead(): readonly ReservedSlot[] {
    const first = this.#reserved.findIndex(hasArrived);
    return first < 0 ? this.#reserved : this.#reserved.slice(0, first);
  }

  *inOrder(): Generator<ReservedSlot> {
    yield* this.#reserved;
    yield* this.#light.inOrder();
    yield* this.#heavy.inOrder();
  }
}

export function hasArrived(entry: ReservedSlot): entry is QueuedCall {
  return 'admit' in entry;
}

interface QueuedCallEvents {
  onAdmit(): void;
  /** The call's signal was aborted: takes it out of the queue and returns the error it is refused with. */
  onAbort(call: QueuedCall): RankdError;
}

/** A call to put into the queue; `admission` resolves when it is admitted and rejects when it is refused or aborted. */
export function queuedCall(
  { deadlineAt, signal }: Pick<CallContext, 'deadlineAt' | 'signal'>,
  isHeavy: boolean,
  events: QueuedCallEvents,
): { call: QueuedCall; admission: Promise<void> } {
  const { promise: admission, resolve, reject } = Promise.withResolvers<void>();
  const call: QueuedCall = {
    deadlineAt,
    isHeavy,
    admit() {
      signal.removeEventListener('abort', onAbort);
      events.onAdmit();
      resolve();
    },
    refuse(error) {
      signal.removeEventListener('abort', onAbort);
      reject(error);
    },
  };
  const onAbort = () => call.refuse(events.onAbort(call));
  signal.addEventListener('abort', onAbort, { once: true });
  return { call, admission };
}
