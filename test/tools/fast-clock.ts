import type { Clock } from '../../src/ports/index.ts';
import { patientClock } from '../support/patient-clock.ts';

const patientTime = patientClock(2);

/** Patient time, so many times faster: deadlines, lags and back-offs of seconds pass in milliseconds. */
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
    return patientTime.monotonic() * this.#speed;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return patientTime.sleep(ms / this.#speed, signal);
  }
}
