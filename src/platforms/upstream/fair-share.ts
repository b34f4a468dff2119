/** What the budget allows at present. */
interface Allowance {
  limit: number;
  windowMs: number;
}

/**
 * Counts the calls that each lane has asked for over about the last window. A lane is heavy with more than its fair share of a
 * window's slots, where one share is kept for a lane that may still come. It is served after the others. Refused calls count too:
 * or else a lane that goes on asking for too much would be light again later in the window, and pass those it was refused before.
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
}
