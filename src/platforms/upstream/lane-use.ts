/** How many calls each lane was given, or waits for, within about the last window. */
export class LaneUse {
  #recent = new Map<string, number>();
  #before = new Map<string, number>();
  #beganAt = Number.NEGATIVE_INFINITY;

  /** Counts one more call of the lane at `now`; returns how many that makes. */
  add(lane: string, { now, windowMs }: { now: number; windowMs: number }): number {
    const windows = Math.floor((now - this.#beganAt) / windowMs);
    if (windows >= 1) {
      this.#before = windows === 1 ? this.#recent : new Map();
      this.#recent = new Map();
      this.#beganAt = windows === 1 ? this.#beganAt + windowMs : now;
    }
    const count = (this.#recent.get(lane) ?? 0) + 1;
    this.#recent.set(lane, count);
    const stillCounts = 1 - (now - this.#beganAt) / windowMs;
    return count + (this.#before.get(lane) ?? 0) * stillCounts;
  }

  /** A call that was counted got nothing. */
  forget(lane: string): void {
    const count = this.#recent.get(lane) ?? 0;
    if (count > 0) this.#recent.set(lane, count - 1);
  }
}
