/** First come, first served within a lane; lanes take turns. */
export class FairQueue<T> {
  /** In the order of their turns; no lane is empty. */
  readonly #lanes = new Map<string, T[]>();

  get isEmpty(): boolean {
    return this.#lanes.size === 0;
  }

  push(lane: string, item: T): void {
    const items = this.#lanes.get(lane);
    if (items === undefined) this.#lanes.set(lane, [item]);
    else items.push(item);
  }

  /** Takes out the item whose turn it is; its lane goes to the back. */
  shift(): T | undefined {
    for (const [lane, [first, ...rest]] of this.#lanes) {
      this.#lanes.delete(lane);
      if (rest.length > 0) this.#lanes.set(lane, rest);
      return first;
    }
    return undefined;
  }

  /** Takes out an item before its turn; its lane keeps its place. */
  remove(item: T): void {
    for (const [lane, items] of this.#lanes) {
      const rest = items.filter((other) => other !== item);
      if (rest.length > 0) this.#lanes.set(lane, rest);
      else this.#lanes.delete(lane);
    }
  }

  /** How many would come before an item that was pushed now. */
  countAhead(lane: string): number {
    const round = this.#lanes.get(lane)?.length ?? 0;
    const counts = [...this.#lanes].map(([name, { length }]) => (name === lane ? length : Math.min(length, round + 1)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Every item in the order in which `shift` would give them. */
  *inOrder(): Generator<T> {
    const lanes = [...this.#lanes.values()];
    for (let round = 0; lanes.some((items) => items.length > round); round += 1) {
      for (const items of lanes) {
        const item = items[round];
        if (item !== undefined) yield item;
      }
    }
  }
}
