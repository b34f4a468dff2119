/**
 * First come, first served within a lane; lanes take turns. The order is settled as items come, so that one that is taken out
 * makes no other wait longer: who was told that there is time for it is still in time.
 */
export class FairQueue<T> {
  /** In the order in which they are served. In each round, each lane has one at most. */
  readonly #entries: Array<{ lane: string; item: T; round: number }> = [];
  /** That of the last item that was served. */
  #round = 0;

  has(lane: string): boolean {
    return this.#entries.some((entry) => entry.lane === lane);
  }

  push(lane: string, item: T): void {
    const last = this.#entries.findLast((entry) => entry.lane === lane);
    const round = (last?.round ?? this.#round) + 1;
    const before = this.#entries.findLastIndex((entry) => entry.round <= round);
    this.#entries.splice(before + 1, 0, { lane, item, round });
  }

  /** Takes out the first item. */
  shift(): T | undefined {
    const first = this.#entries.shift();
    this.#round = first?.round ?? this.#round;
    return first?.item;
  }

  /** Takes out an item wherever it is. False if there is no such item. */
  remove(item: T): boolean {
    const at = this.#entries.findIndex((entry) => entry.item === item);
    if (at >= 0) this.#entries.splice(at, 1);
    return at >= 0;
  }

  /** Every item in the order in which `shift` would return them. */
  *inOrder(): Generator<T> {
    for (const { item } of this.#entries) yield item;
  }
}
