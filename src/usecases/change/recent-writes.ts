import type { Clock } from '../../ports/index.ts';

/** Longer than reads lag on any platform. */
const keptMs = 60_000;

/**
 * When this process last changed each member, in milliseconds on `Clock.monotonic()`. The times in the history don't say how
 * long ago that is, if the wall clock was set since.
 */
export class RecentWrites {
  readonly #clock: Clock;
  /** The latest write is last. */
  readonly #at = new Map<number, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(userId: number): void {
    const now = this.#clock.monotonic();
    this.#at.delete(userId);
    this.#at.set(userId, now);
    for (const [oldest, at] of this.#at) {
      if (now - at <= keptMs) break;
      this.#at.delete(oldest);
    }
  }

  of(userId: number): number | undefined {
    return this.#at.get(userId);
  }
}
