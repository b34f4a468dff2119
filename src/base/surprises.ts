/** Unexpected behavior of the platform. */
export interface Surprise {
  /** The call in which it occurred, or `change` for a rank change as a whole. */
  operation: string;
  /** In words, e.g. `GroupMembership.roles: missing`. It never contains a value from a response. */
  what: string;
  count: number;
  /** On `Clock.now()`. */
  firstAt: number;
  lastAt: number;
}

/** Further kinds are counted as one, because they are labels of a metric. */
const maxKinds = 50;

/** Counts surprises by kind since the process began. */
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
