import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../src/ports.ts';

/** Real time, so many times faster: deadlines, lags and back-offs of seconds pass in milliseconds. */
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
    return performance.now() * this.#speed;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return delay(ms / this.#speed, undefined, { signal });
  }
}
