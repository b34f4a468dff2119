import type { Clock } from '../ports/index.ts';

export interface Rate {
  /** The long-term average. */
  perMinute: number;
  /** The number of tokens in a full bucket. */
  burst: number;
}

/** The result of taking one token. */
export interface Taken {
  isAllowed: boolean;
  left: number;
  msToNext: number;
  msToFull: number;
}

/** Returns the result for a bucket with `left` tokens. */
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
 * Token buckets by name, at most `maxBuckets`, because callers can make up names. They are in two generations, and the
 * older generation is dropped as a whole (the hashlru algorithm). This rarely loses anything, because a bucket that has
 * not been used recently is usually full again.
 */
export class TokenBuckets {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #maxBuckets: number;
  #recent = new Map<string, Bucket>();
  /** The previous generation. With a single list in order of use, moving buckets would cost more than counting. */
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

  /** Sets a bucket's tokens to the number left after the requests to all nodes. */
  correct(name: string, tokens: number): void {
    const bucket = this.#recent.get(name) ?? this.#older.get(name);
    if (bucket === undefined) return;
    bucket.tokens = tokens;
    bucket.at = this.#clock.monotonic();
  }

  /** Adds the bucket to the recent generation. If the recent generation is full, first makes it the older one. */
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

/** The maximum number of separately limited addresses. */
const maxSources = 10_000;

/** Limits log lines that callers can cause, per kind and per address of each kind, and counts the omitted lines. */
export class CountedLines {
  readonly #buckets: TokenBuckets;
  readonly #leftOut = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#buckets = new TokenBuckets(clock, maxSources);
  }

  /** If a line of this kind is due, returns the number of lines omitted before it, if any; otherwise, `undefined`. */
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
