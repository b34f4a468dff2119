import type { Pace } from '../../ports/index.ts';
import { AnswerTime } from './answer-time.ts';
import type { RateReading } from './retry-after.ts';

/** What a gate has seen of its own calls. Times are on `Clock.monotonic()`. */
export class GateFigures {
  readonly #answerTime = new AnswerTime();
  readonly #admissions = { admitted: 0, waitedMs: 0 };
  /** What the platform said last of the calls that are left, and how long it holds. */
  #told = { remaining: 0, until: 0 };
  /** How often in a row the platform asked us to wait. */
  refusals = 0;

  get answerMs(): number {
    return this.#answerTime.ms;
  }

  get admissions(): Pick<Pace, 'admitted' | 'waitedMs'> {
    return this.#admissions;
  }

  answered(ms: number): void {
    this.#answerTime.note(ms);
  }

  admitted(waitedMs = 0): void {
    this.#admissions.admitted += 1;
    this.#admissions.waitedMs += waitedMs;
  }

  /** What an answer said at `now` of the calls that are left. */
  told({ remaining, resetMs }: RateReading, now: number): void {
    if (remaining !== undefined && resetMs !== undefined) this.#told = { remaining, until: now + resetMs };
  }

  /** How many calls are left by what the platform said last; 0 once that no longer holds. */
  toldLeft(now: number): number {
    return now < this.#told.until ? this.#told.remaining : 0;
  }
}
