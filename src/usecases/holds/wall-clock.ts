import type { Clock } from '../../ports/index.ts';

/** A jump of the wall clock that is longer than this, in milliseconds, is no correction. */
const jumpMs = 5 * 60_000;
/** For so long the wall clock has to go steadily after a jump forward before its word counts again. */
const steadyMs = 10 * 60_000;

/**
 * Compares the wall clock with the monotonic one. A clock that jumps forward by a year must not end all suspensions at once. What was
 * before this process began counts for nothing: a machine that was off is no jump.
 */
export class WallClock {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  #last: { wall: number; monotonic: number } | undefined;
  #jumpedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  /** Call it regularly. `jumpedMs` is how far the wall clock jumped since the last call, if it did. */
  look(): { isSteady: boolean; jumpedMs?: number } {
    const now = { wall: this.#clock.now(), monotonic: this.#clock.monotonic() };
    const last = this.#last ?? now;
    this.#last = now;
    const jumpedMs = now.wall - last.wall - (now.monotonic - last.monotonic);
    if (jumpedMs > jumpMs) this.#jumpedAt = now.monotonic;
    const isSteady = now.monotonic - this.#jumpedAt >= steadyMs;
    return { isSteady, ...(Math.abs(jumpedMs) > jumpMs && { jumpedMs }) };
  }
}
