import type { Clock } from './clock.ts';

/**
 * Stores the time of each member's last write (on `Clock.monotonic()`) for at least `retentionMs` milliseconds.
 */
export class LatestWrites {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #retentionMs: number;
  /** Oldest first. */
  readonly #at = new Map<number, number>();

  constructor(clock: Pick<Clock, 'monotonic'>, retentionMs: number) {
    this.#clock = clock;
    this.#retentionMs = retentionMs;
  }

  note(userId: number): void {
    const now = this.#clock.monotonic();
    this.#at.delete(userId);
    this.#at.set(userId, now);
    for (const [oldest, at] of this.#at) {
      if (now - at <= this.#retentionMs) break;
      this.#at.delete(oldest);
    }
  }

  of(userId: number): number | undefined {
    return this.#at.get(userId);
  }
}
