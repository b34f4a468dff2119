/** A lane is heavy if it used, or queues for, more than this share of a window's slots. It is served after the other lanes. */
const heavyShare = 0.5;
/** A heavy lane leaves this share of the slots free: a caller that arrives a little later would otherwise find all of them spent. */
const headroomShare = 0.1;

/** What the budget allows at present. */
interface Allowance {
  limit: number;
  windowMs: number;
}

/** Counts the calls of each lane over about the last window: those admitted and those that wait. */
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
    return calls + (this.#previous.get(lane) ?? 0) * previousShare > limit * heavyShare;
  }

  /** A call that was counted has been refused. */
  uncount(lane: string): void {
    const calls = this.#current.get(lane) ?? 0;
    if (calls > 0) this.#current.set(lane, calls - 1);
  }
}

/** How many slots of a window a heavy lane leaves free. */
export function headroom({ limit }: Pick<Allowance, 'limit'>): number {
  return Math.floor(limit * headroomShare);
}
