import { LatestWrites } from '../../base/latest-writes.ts';
import type { CallContext, Clock } from '../../ports/index.ts';

/** The minimum time between writes to the same membership once Roblox has refused any write because of a lock. */
export const lockMs = 300;
/** Writes stay spaced out for this long after the last refusal because of a lock. */
const rememberedMs = 600_000;

/**
 * Spaces out the writes to each membership for a while after Roblox refuses any write because of a lock. Otherwise,
 * writes are not delayed, so an ordinary change takes no longer than its calls.
 */
export class WriteSpacing {
  readonly #clock: Clock;
  /** A time on `Clock.monotonic()`. */
  #spacesUntil = Number.NEGATIVE_INFINITY;
  readonly #writes: LatestWrites;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#writes = new LatestWrites(clock, lockMs);
  }

  noteLock(): void {
    this.#spacesUntil = this.#clock.monotonic() + rememberedMs;
  }

  /** Calls `write` once the spacing has passed, or as soon as `signal` is aborted. */
  async withSpacing<T>(userId: number, { signal }: Pick<CallContext, 'signal'>, write: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const waitMs = (this.#writes.of(userId) ?? Number.NEGATIVE_INFINITY) + lockMs - now;
    if (now < this.#spacesUntil && waitMs > 0) await this.#clock.sleep(waitMs, signal).catch(() => undefined);
    try {
      return await write();
    } finally {
      this.#writes.note(userId);
    }
  }
}
