/** What the budget allows at present. */
interface Allowance {
  limit: number;
  windowMs: number;
}

/**
 * Counts the calls of each lane over about the last window: those admitted and those that wait. A lane is heavy with more than
 * its fair share of a window's slots, where one share is kept for a lane that may still come. It is served after the others.
 */
export class FairShare {
  #current = new Map<string, number>();
  #previous = new Map<string, number>();
  #beganAt = Number.NEGATIVE_INFINITY;

  /** Counts one more call of the lane at `now`. Returns true if the lane is heavy with it. */
  count(lane: string, now: number, { limit, windowMs }: Allowance): boolean {
    const windows = Math.floor((now - this.#beganAt) / windowMs);
    if (windows >= 1) {
      this.#previous = windows === 1 ? this.#current : new Map();
      this.#current = new Map();
      this.#beganAt = windows === 1 ? this.#beganAt + windowMs : now;
    }
    const calls = (this.#current.get(lane) ?? 0) + 1;
    this.#current.set(lane, calls);
    const previousShare = 1 - (now - this.#beganAt) / windowMs;
    const lanes = new Set([...this.#current.keys(), ...this.#previous.keys()]).size;
    return calls + (this.#previous.get(lane) ?? 0) * previousShare > limit / (lanes + 1);
  }

  /** A call that was counted has been refused. */
  uncount(lane: string): void {
    const calls = this.#current.get(lane) ?? 0;
    if (calls > 0) this.#current.set(lane, calls - 1);
  }
}
