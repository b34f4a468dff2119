import type { Pace } from '../../ports/index.ts';
import type { RateReading } from './answer.ts';

/** Statistics about the calls that a gate admits. Times are on `Clock.monotonic()`. */
export class GateFigures {
  readonly #responseTime = new ResponseTime();
  readonly #admissions = { admitted: 0, waitedMs: 0 };
  /** The number of remaining calls that the platform last reported, and the time until which that report is valid. */
  #reported = { remaining: 0, until: 0 };
  refusals = 0;

  get answerMs(): number {
    return this.#responseTime.ms;
  }

  get admissions(): Pick<Pace, 'admitted' | 'waitedMs'> {
    return this.#admissions;
  }

  noteAnswer(ms: number): void {
    this.#responseTime.note(ms);
  }

  noteAdmission(): void {
    this.#admissions.admitted += 1;
  }

  noteWait(ms: number): void {
    this.#admissions.waitedMs += ms;
  }

  noteReading({ remaining, resetMs }: RateReading, now: number): void {
    if (remaining !== undefined && resetMs !== undefined) this.#reported = { remaining, until: now + resetMs };
  }

  /** The remaining calls according to the platform's last report; 0 once that report has expired. */
  remaining(now: number): number {
    return now < this.#reported.until ? this.#reported.remaining : 0;
  }
}

/** Caps the estimate, so that calls are still sent while the platform is unusually slow. */
const maxMs = 1_000;

/**
 * Estimates the time within which nearly every response arrives, as TCP estimates its retransmission timeout (RFC
 * 6298).
 */
class ResponseTime {
  #smoothedMs: number | undefined;
  #variationMs = 0;

  note(ms: number): void {
    if (this.#smoothedMs === undefined) {
      this.#smoothedMs = ms;
      this.#variationMs = ms / 2;
      return;
    }
    this.#variationMs += (Math.abs(this.#smoothedMs - ms) - this.#variationMs) / 4;
    this.#smoothedMs += (ms - this.#smoothedMs) / 8;
  }

  get ms(): number {
    const smoothedMs = this.#smoothedMs ?? 0;
    return Math.min(maxMs, smoothedMs + Math.max(4 * this.#variationMs, smoothedMs / 4));
  }
}
