import type { Clock } from '../ports/index.ts';

export interface Rate {
  /** The average over a long time. */
  perMinute: number;
  /** How many may be taken at once after a quiet time. */
  burst: number;
}

/** The result of taking one token. */
export interface Taken {
  isAllowed: boolean;
  /** How many more may be taken now. */
  left: number;
  msToNext: number;
  msToFull: number;
}

/** What a caller is told of a limit of which so much is left. */
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
  /** When they were counted, on `Clock.monotonic()`. */
  at: number;
}

/**
 * Token buckets by name. Callers can make up names, so at most `maxBuckets` are kept: two generations, of which the older one is
 * dropped as a whole (the hashlru algorithm). A bucket that nobody has used for long is full again, so nothing is lost with it.
 */
export class TokenBuckets {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #maxBuckets: number;
  #recent = new Map<string, Bucket>();
  /** The previous generation. To move a bucket to the end of one list with each request would cost more than all the rest. */
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

  /** Sets what is left of a bucket, as others have counted it. */
  correct(name: string, tokens: number): void {
    const bucket = this.#recent.get(name) ?? this.#older.get(name);
    if (bucket === undefined) return;
    bucket.tokens = tokens;
    bucket.at = this.#clock.monotonic();
  }

  /** Puts the bucket into the recent generation. If that has half of `maxBuckets`, it becomes the older one first. */
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
