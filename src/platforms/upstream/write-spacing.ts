import { LatestWrites } from '../../base/latest-writes.ts';
import type { CallContext, Clock } from '../../ports/index.ts';

/** How far apart the writes of one membership are kept once Roblox was seen to lock memberships. */
export const lockMs = 300;
/** How long they are kept apart after a lock was met. */
const rememberedMs = 600_000;

/**
 * Keeps the writes of one membership apart, for a while after any write has met a lock. As long as none has, they follow each
 * other at once, so that an ordinary change takes no longer than its calls.
 */
export class WriteSpacing {
  readonly #clock: Clock;
  /** On `Clock.monotonic()`. */
  #isKeptUntil = Number.NEGATIVE_INFINITY;
  /** By when they ended. */
  readonly #writes: LatestWrites;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#writes = new LatestWrites(clock, lockMs);
  }

  noteLock(): void {
    this.#isKeptUntil = this.#clock.monotonic() + rememberedMs;
  }

  /** Writes once it is time. A write that is called off meanwhile is to find that out by itself. */
  async apart<T>(userId: number, { signal }: Pick<CallContext, 'signal'>, write: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const waitMs = (this.#writes.of(userId) ?? Number.NEGATIVE_INFINITY) + lockMs - now;
    if (now < this.#isKeptUntil && waitMs > 0) await this.#clock.sleep(waitMs, signal).catch(() => undefined);
    try {
      return await write();
    } finally {
      this.#writes.note(userId);
    }
  }
}
