import type { Clock } from '../ports.ts';

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

/**
 * Token buckets by name. A bucket that nobody took from for long is as good as none, so the ones taken from last are
 * remembered, up to `most`: names that callers can make up do not fill the memory.
 */
export class TokenBuckets {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #most: number;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  get size(): number {
    return this.#buckets.size;
  }

  take(name: string, { perMinute, burst }: Rate): Taken {
    const now = this.#clock.monotonic();
    const perMs = perMinute / 60_000;
    const { tokens, at } = this.#buckets.get(name) ?? { tokens: burst, at: now };
    const refilled = Math.min(burst, tokens + (now - at) * perMs);
    const isAllowed = refilled >= 1;
    const left = isAllowed ? refilled - 1 : refilled;
    this.#remember(name, { tokens: left, at: now });
    return {
      isAllowed,
      left: Math.floor(left),
      msToNext: Math.max(0, (1 - left) / perMs),
      msToFull: (burst - left) / perMs,
    };
  }

  /** As the newest; the oldest makes room. */
  #remember(name: string, bucket: { tokens: number; at: number }): void {
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
    if (this.#buckets.size <= this.#most) return;
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}
