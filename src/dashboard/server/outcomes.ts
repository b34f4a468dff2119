import { RankdError } from '../../base/errors.ts';
import type { Clock } from '../../ports/index.ts';
import { FieldError } from './requests.ts';

/** After this time, rankd treats a repeated request as a new one. */
const storedMs = 10 * 60_000;
const maxStored = 500;

interface Outcome<Answer> {
  /** The request's hash. */
  request: string;
  answer: Promise<Answer>;
  endsAt: number;
}

/**
 * Request outcomes, keyed by session and idempotency key. After a double click or a lost response, the repeated request
 * receives the first one's outcome. Outcomes are stored in memory only, because a response can contain a secret.
 */
export class Outcomes<Answer> {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #stored = new Map<string, Outcome<Answer>>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /**
   * Runs `work` for the first request with a key, and returns the same outcome for repeated requests. Throws
   * `invalid_request` if the key is missing or malformed, and `idempotency_mismatch` if it was used for a different
   * request.
   */
  async once(
    { session, key, request }: { session: string; key: unknown; request: string },
    work: () => Promise<Answer>,
  ): Promise<Answer> {
    if (typeof key !== 'string' || !/^[\w-]{8,64}$/.test(key))
      throw new FieldError('idempotency-key', 'must be a header of 8 to 64 letters, digits, dashes or underscores');
    this.#sweep();
    const slot = `${session} ${key}`;
    const earlier = this.#stored.get(slot);
    if (earlier !== undefined && earlier.request !== request) throw mismatch();
    if (earlier !== undefined) return earlier.answer;
    const answer = work();
    this.#stored.set(slot, { request, answer, endsAt: this.#clock.monotonic() + storedMs });
    answer.catch((error) => {
      // an unknown outcome is the only error that stays stored, because its request must not run again
      if (!(error instanceof RankdError) || error.code !== 'outcome_unknown') this.#stored.delete(slot);
    });
    return answer;
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const [slot, { endsAt }] of this.#stored)
      if (endsAt <= now || this.#stored.size >= maxStored) this.#stored.delete(slot);
  }
}

function mismatch(): RankdError {
  return new RankdError('idempotency_mismatch', 'This form was already sent with different values.', {
    hint: 'reload the page, check whether the first request took effect, and try again',
  });
}
