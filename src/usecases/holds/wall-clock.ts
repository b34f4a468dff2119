import type { Clock } from '../../ports/index.ts';

/** A larger jump of the wall clock, in milliseconds, is not a correction. */
const jumpMs = 5 * 60_000;
/** After a jump forward, the wall clock must run steadily for this long before it counts again. */
const steadyMs = 10 * 60_000;

/**
 * Compares the wall clock with the monotonic one. A clock that jumps forward by a year must not end all suspensions at
 * once. Time before this process began does not count: a machine that was off did not jump.
 */
export class WallClock {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  #last: { wall: number; monotonic: number } | undefined;
  #jumpedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  /** Call it regularly. `jumpedMs` is the jump of the wall clock since the last call, if any. */
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
