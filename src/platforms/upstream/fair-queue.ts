/** First come, first served within a lane; lanes take turns. */
export class FairQueue<T> {
  /** The lane to be served next comes first. No lane is empty. */
  readonly #lanes = new Map<string, T[]>();

  has(lane: string): boolean {
    return this.#lanes.has(lane);
  }

  push(lane: string, item: T): void {
    const items = this.#lanes.get(lane);
    if (items === undefined) this.#lanes.set(lane, [item]);
    else items.push(item);
  }

  /** Takes out the first item of the next lane, which goes to the back. */
  shift(): T | undefined {
    for (const [lane, [first, ...rest]] of this.#lanes) {
      this.#lanes.delete(lane);
      if (rest.length > 0) this.#lanes.set(lane, rest);
      return first;
    }
    return undefined;
  }

  /** Takes out an item wherever it is; its lane keeps its position. False if there is no such item. */
  remove(item: T): boolean {
    for (const [lane, items] of this.#lanes) {
      if (!items.includes(item)) continue;
      const rest = items.filter((other) => other !== item);
      if (rest.length > 0) this.#lanes.set(lane, rest);
      else this.#lanes.delete(lane);
      return true;
    }
    return false;
  }

  /** Every item in the order in which `shift` would return them. */
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
