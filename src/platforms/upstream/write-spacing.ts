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
  /** When the last write of each user ended, the latest one last. */
  readonly #endedAt = new Map<number, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  noteLock(): void {
    this.#isKeptUntil = this.#clock.monotonic() + rememberedMs;
  }

  /** Writes once it is time. A write that is called off meanwhile is to find that out by itself. */
  async apart<T>(userId: number, { signal }: Pick<CallContext, 'signal'>, write: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const waitMs = (this.#endedAt.get(userId) ?? Number.NEGATIVE_INFINITY) + lockMs - now;
    if (now < this.#isKeptUntil && waitMs > 0) await this.#clock.sleep(waitMs, signal).catch(() => undefined);
    try {
      return await write();
    } finally {
      this.#note(userId);
    }
  }

  #note(userId: number): void {
    const now = this.#clock.monotonic();
    this.#endedAt.delete(userId);
    this.#endedAt.set(userId, now);
    for (const [oldest, at] of this.#endedAt) {
      if (now - at < lockMs) break;
      this.#endedAt.delete(oldest);
    }
  }
}
