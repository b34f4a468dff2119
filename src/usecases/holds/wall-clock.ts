import type { Clock } from '../../ports/index.ts';

/** A larger change of the wall clock is a jump, not an ordinary correction. */
const maxCorrectionMs = 5 * 60_000;
/** The time that must pass after a forward jump before rankd trusts the wall clock again. */
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

  /**
   * Call this regularly. `jumpedMs` is the wall clock's jump since the last call, negative if the clock was set back;
   * absent if there was none.
   */
  check(): { isSteady: boolean; jumpedMs?: number } {
    const now = { wall: this.#clock.now(), monotonic: this.#clock.monotonic() };
    const last = this.#last ?? now;
    this.#last = now;
    const jumpedMs = now.wall - last.wall - (now.monotonic - last.monotonic);
    if (jumpedMs > maxCorrectionMs) this.#jumpedAt = now.monotonic;
    const isSteady = now.monotonic - this.#jumpedAt >= steadyMs;
    return { isSteady, ...(Math.abs(jumpedMs) > maxCorrectionMs && { jumpedMs }) };
  }
}
