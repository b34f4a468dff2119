import type { Clock } from '../ports/index.ts';

export interface Rate {
  /** The long-term average. */
  perMinute: number;
  /** The number of tokens in a full bucket. */
  burst: number;
}

export interface Taken {
  isAllowed: boolean;
  left: number;
  msToNext: number;
  msToFull: number;
}

export function taken({ isAllowed, left }: { isAllowed: boolean; left: number }, { perMinute, burst }: Rate): Taken {
  const perMs = perMinute / 60_000;
  return {
    isAllowed,
    left: Math.max(0, Math.floor(left)),
    msToNext: Math.max(0, (1 - left) / perMs),
    msToFull: (burst - left) / perMs,
  };
}

interface Bucket {
  tokens: number;
  /** The time at which the tokens were counted, on `Clock.monotonic()`. */
  at: number;
}

/**
 * At most `maxBuckets` token buckets, keyed by name; callers can make up any number of names. The buckets belong to two
 * generations, and the older one is dropped as a whole (the hashlru algorithm). This rarely loses information, because
 * a bucket that has not been used recently is usually full again.
 */
export class TokenBuckets {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #maxBuckets: number;
  #recent = new Map<string, Bucket>();
  /** The previous generation. In a single list ordered by use, moving buckets would cost more than counting. */
  #older = new Map<string, Bucket>();

  constructor(clock: Pick<Clock, 'monotonic'>, maxBuckets: number) {
    this.#clock = clock;
    this.#maxBuckets = maxBuckets;
  }

  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  take(name: string, { perMinute, burst }: Rate): Taken {
    const now = this.#clock.monotonic();
    const perMs = perMinute / 60_000;
    const bucket = this.#recent.get(name) ?? this.#remember(name, { tokens: burst, at: now });
    const refilled = Math.min(burst, bucket.tokens + (now - bucket.at) * perMs);
    const isAllowed = refilled >= 1;
    bucket.tokens = isAllowed ? refilled - 1 : refilled;
    bucket.at = now;
    return taken({ isAllowed, left: bucket.tokens }, { perMinute, burst });
  }

  /** Sets the number of tokens left after counting the requests to all nodes. */
  correct(name: string, tokens: number): void {
    const bucket = this.#recent.get(name) ?? this.#older.get(name);
    if (bucket === undefined) return;
    bucket.tokens = tokens;
    bucket.at = this.#clock.monotonic();
  }

  /**
   * Moves a bucket to the recent generation, or adds a full one. If the recent generation is full, it first becomes the
   * older one.
   */
  #remember(name: string, full: Bucket): Bucket {
    if (this.#recent.size >= this.#maxBuckets / 2) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    const bucket = this.#older.get(name) ?? full;
    this.#older.delete(name);
    this.#recent.set(name, bucket);
    return bucket;
  }
}

/** The maximum number of buckets, for kinds and for their addresses. */
const maxBuckets = 10_000;

/**
 * Limits the log lines that callers can cause, per kind and per address within each kind, and counts the omitted lines.
 */
export class CountedLines {
  readonly #buckets: TokenBuckets;
  readonly #leftOut = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#buckets = new TokenBuckets(clock, maxBuckets);
  }

  /**
   * Returns `undefined` if the line must be omitted; otherwise, returns the number of lines omitted before it, if any.
   */
  take(kind: string, rate: Rate, ofAddress?: { network: string; rate: Rate }): { leftOut?: number } | undefined {
    const leftOut = this.#leftOut.get(kind);
    const isAllowed =
      ofAddress === undefined || this.#buckets.take(`${kind} ${ofAddress.network}`, ofAddress.rate).isAllowed;
    if (!isAllowed || !this.#buckets.take(kind, rate).isAllowed) {
      this.#leftOut.set(kind, (leftOut ?? 0) + 1);
      return undefined;
    }
    if (leftOut === undefined) return {};
    this.#leftOut.delete(kind);
    return { leftOut };
  }
}
