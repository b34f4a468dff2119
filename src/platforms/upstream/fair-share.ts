/** Of the slots of a window: who was given or waits for more is heavy, comes after the others, … */
const heavyShare = 0.5;
/** … and leaves them so much, or whoever comes a little later would find all of it spent. */
const spareShare = 0.1;

/** What the budget allows at present. */
interface Allowance {
  limit: number;
  windowMs: number;
}

/** How many calls each lane was given, or waits for, within about the last window. */
export class FairShare {
  #recent = new Map<string, number>();
  #before = new Map<string, number>();
  #beganAt = Number.NEGATIVE_INFINITY;

  /** Counts one more call of the lane at `now`; true where that makes it heavy. */
  exceeds(lane: string, now: number, { limit, windowMs }: Allowance): boolean {
    const windows = Math.floor((now - this.#beganAt) / windowMs);
    if (windows >= 1) {
      this.#before = windows === 1 ? this.#recent : new Map();
      this.#recent = new Map();
      this.#beganAt = windows === 1 ? this.#beganAt + windowMs : now;
    }
    const count = (this.#recent.get(lane) ?? 0) + 1;
    this.#recent.set(lane, count);
    const stillCounts = 1 - (now - this.#beganAt) / windowMs;
    return count + (this.#before.get(lane) ?? 0) * stillCounts > limit * heavyShare;
  }

  /** A call that was counted got nothing. */
  forget(lane: string): void {
    const count = this.#recent.get(lane) ?? 0;
    if (count > 0) this.#recent.set(lane, count - 1);
  }
}

/** So many slots a heavy lane leaves to the others. */
export function spareSlots({ limit }: Pick<Allowance, 'limit'>): number {
  return Math.floor(limit * spareShare);
}
