import type { Clock } from '../../src/ports/index.ts';
import { pacedClock } from '../support/paced-clock.ts';

const pacedTime = pacedClock(2);

/** A clock that runs `speed` times as fast as real time, to shorten deadlines, lags and backoffs. */
export class FastClock implements Clock {
  readonly #speed: number;
  readonly #startedAt = Date.now();

  constructor(speed: number) {
    this.#speed = speed;
  }

  now(): number {
    return this.#startedAt + Math.floor(this.monotonic());
  }

  monotonic(): number {
    return pacedTime.monotonic() * this.#speed;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return pacedTime.sleep(ms / this.#speed, signal);
  }
}
