import type { Clock } from '../../ports/index.ts';

/** The largest wall clock jump that counts as an ordinary correction. */
const jumpMs = 5 * 60_000;
/** The time that must pass after a forward jump before the wall clock is trusted again. */
const steadyMs = 10 * 60_000;

/**
 * Detects jumps of the wall clock by comparing it with the monotonic clock, because a clock that jumps forward by a
 * year must not end all suspensions at once. Ignores jumps from before this process started.
 */
export class WallClock {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  #last: { wall: number; monotonic: number } | undefined;
  #jumpedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  /** Must be called regularly. `jumpedMs` is the jump since the last call, if any. */
  check(): { isSteady: boolean; jumpedMs?: number } {
    const now = { wall: this.#clock.now(), monotonic: this.#clock.monotonic() };
    const last = this.#last ?? now;
    this.#last = now;
    const jumpedMs = now.wall - last.wall - (now.monotonic - last.monotonic);
    if (jumpedMs > jumpMs) this.#jumpedAt = now.monotonic;
    const isSteady = now.monotonic - this.#jumpedAt >= steadyMs;
    return { isSteady, ...(Math.abs(jumpedMs) > jumpMs && { jumpedMs }) };
  }
}
