import type { RankdError } from '../../base/errors.ts';
import { FairQueue } from './fair-queue.ts';

/** A turn that is promised to a call which has not come yet. */
export interface Place {
  readonly deadlineAt: number;
}

/** A call that has come and waits for its turn. */
export interface Waiter extends Place {
  /** True of a lane that has asked for much already: the others come first. */
  isHeavy: boolean;
  grant(): void;
  refuse(error: RankdError): void;
}

/**
 * All whose turn is to come: those it is promised to, the earliest deadline first, for in that order all of them are in time
 * if they can be in any; then the others, in fair order; at last those of heavy lanes, in fair order as well.
 */
export class Line {
  readonly #promised: Place[] = [];
  readonly #light = new FairQueue<Waiter>();
  readonly #heavy = new FairQueue<Waiter>();

  promise(place: Place): void {
    const before = this.#promised.findLastIndex(({ deadlineAt }) => deadlineAt <= place.deadlineAt);
    this.#promised.splice(before + 1, 0, place);
  }

  push(lane: string, waiter: Waiter): void {
    (waiter.isHeavy ? this.#heavy : this.#light).push(lane, waiter);
  }

  /** Takes out the first who has come. */
  shift(): Waiter | undefined {
    const waiter = this.#promised.find(hasCome);
    if (waiter === undefined) return this.#light.shift() ?? this.#heavy.shift();
    this.remove(waiter);
    return waiter;
  }

  /** Takes out a promised turn, or a call before its turn; false where it is not in the line (any more). */
  remove(place: Place): boolean {
    const at = this.#promised.indexOf(place);
    if (at >= 0) this.#promised.splice(at, 1);
    return at >= 0 || (hasCome(place) && (this.#light.remove(place) || this.#heavy.remove(place)));
  }

  hasHeavy(lane: string): boolean {
    return this.#heavy.has(lane);
  }

  /** The first who has come. */
  next(): Waiter | undefined {
    for (const place of this.inOrder()) if (hasCome(place)) return place;
    return undefined;
  }

  /** The places before the first who has come. */
  keptAhead(): readonly Place[] {
    const first = this.#promised.findIndex(hasCome);
    return first < 0 ? this.#promised : this.#promised.slice(0, first);
  }

  *inOrder(): Generator<Place> {
    yield* this.#promised;
    yield* this.#light.inOrder();
    yield* this.#heavy.inOrder();
  }
}

export function hasCome(place: Place): place is Waiter {
  return 'grant' in place;
}
