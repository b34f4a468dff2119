import type { Clock } from '../ports/index.ts';
import { type Rate, TokenBuckets } from './token-buckets.ts';

/** Kinds are made from codes and from the ids of keys. */
const maxKinds = 1_000;

/** Limits the lines of the log that callers can cause, kind by kind, and counts those that are left out. */
export class CountedLines {
  readonly #buckets: TokenBuckets;
  readonly #leftOut = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#buckets = new TokenBuckets(clock, maxKinds);
  }

  /** If a line of the kind is due, what it says of those that were left out before it; otherwise `undefined`. */
  take(kind: string, rate: Rate): { leftOut?: number } | undefined {
    const leftOut = this.#leftOut.get(kind);
    if (!this.#buckets.take(kind, rate).isAllowed) {
      this.#leftOut.set(kind, (leftOut ?? 0) + 1);
      return undefined;
    }
    if (leftOut === undefined) return {};
    this.#leftOut.delete(kind);
    return { leftOut };
  }
}
