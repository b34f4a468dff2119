/** Behavior of the platform that rankd did not expect. */
export interface Surprise {
  /** The platform operation, or `change` for a whole rank change. */
  operation: string;
  /** Never contains values from responses, e.g. `GroupMembership.roles: missing`. */
  what: string;
  count: number;
  /** In epoch milliseconds, as is `lastAt`. */
  firstAt: number;
  lastAt: number;
}

/**
 * Each kind of surprise becomes a time series in the metrics. Beyond this many kinds, all further ones count as one.
 */
const maxKinds = 50;

export class Surprises {
  readonly #kinds = new Map<string, Surprise>();
  readonly #clock: { now(): number };

  constructor(clock: { now(): number }) {
    this.#clock = clock;
  }

  note(operation: string, what: string): void {
    const known = this.#kinds.get(`${operation} ${what}`);
    if (known !== undefined) {
      known.count += 1;
      known.lastAt = this.#clock.now();
    } else if (this.#kinds.size < maxKinds || operation === 'any') {
      const at = this.#clock.now();
      this.#kinds.set(`${operation} ${what}`, { operation, what, count: 1, firstAt: at, lastAt: at });
    } else this.note('any', 'more kinds');
  }

  list(): Surprise[] {
    return [...this.#kinds.values()].map((surprise) => ({ ...surprise }));
  }
}
