import type { Clock } from './clock.ts';

/**
 * Records when each member was last written to (on `Clock.monotonic()`), and keeps that for at least `keptMs`
 * milliseconds.
 */
export class LatestWrites {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #keptMs: number;
  /** Oldest first. */
  readonly #at = new Map<number, number>();

  constructor(clock: Pick<Clock, 'monotonic'>, keptMs: number) {
    this.#clock = clock;
    this.#keptMs = keptMs;
  }

  note(userId: number): void {
    const now = this.#clock.monotonic();
    this.#at.delete(userId);
    this.#at.set(userId, now);
    for (const [oldest, at] of this.#at) {
      if (now - at <= this.#keptMs) break;
      this.#at.delete(oldest);
    }
  }

  of(userId: number): number | undefined {
    return this.#at.get(userId);
  }
}
