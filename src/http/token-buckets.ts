import type { Clock } from '../ports/index.ts';

export interface Rate {
  /** In the long run. */
  perMinute: number;
  /** How many may come at once after a quiet time. */
  burst: number;
}

/** What became of one request. */
export interface Taken {
  isAllowed: boolean;
  /** How many more may come at once. */
  left: number;
  msToNext: number;
  msToFull: number;
}

interface Bucket {
  tokens: number;
  /** When that was counted, on `Clock.monotonic()`. */
  at: number;
}

/**
 * Token buckets by name. A bucket that nobody took from for long is as good as none, so at least half of `most` are remembered,
 * those taken from last: names that callers can make up do not fill the memory.
 */
export class TokenBuckets {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #most: number;
  #recent = new Map<string, Bucket>();
  /** Those that were recent before: to move a bucket to the end with each request would cost more than the rest. */
  #older = new Map<string, Bucket>();

  constructor(clock: Pick<Clock, 'monotonic'>, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  take(name: string, { perMinute, burst }: Rate): Taken {
    const now = this.#clock.monotonic();
    const perMs = perMinute / 60_000;
    const bucket = this.#recent.get(name) ?? this.#applyConfig(name, { tokens: burst, at: now });
    const refilled = Math.min(burst, bucket.tokens + (now - bucket.at) * perMs);
    const isAllowed = refilled >= 1;
    const left = isAllowed ? refilled - 1 : refilled;
    bucket.tokens = left;
    bucket.at = now;
    return {
      isAllowed,
      left: Math.floor(left),
      msToNext: Math.max(0, (1 - left) / perMs),
      msToFull: (burst - left) / perMs,
    };
  }

  /** Makes the bucket a recent one; once those are half of `most`, the older ones are forgotten. */
  #applyConfig(name: string, full: Bucket): Bucket {
    if (this.#recent.size >= this.#most / 2) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    const bucket = this.#older.get(name) ?? full;
    this.#older.delete(name);
    this.#recent.set(name, bucket);
    return bucket;
  }
}
