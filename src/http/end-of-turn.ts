import { asRankdError, type RankdError } from '../base/errors.ts';

let waiting: Array<() => void> = [];

/**
 * Runs `work` at the end of this turn of the event loop, once all input of the turn was received. All work of a turn
 * runs without a pause, in order of arrival. It must not throw, or the rest would not run.
 */
export function atEndOfTurn(work: () => void): void {
  if (waiting.push(work) === 1) setImmediate(runAll);
}

function runAll(): void {
  const works = waiting;
  waiting = [];
  for (const work of works) work();
}

type Request = (failure?: RankdError) => void;

/**
 * Handles requests once the store has the changes made before their arrival. One call of the store serves all requests
 * of a turn, and is made after the last of them was received. Requests that arrive during the call share the next one,
 * unless this one fails.
 */
export class Freshness {
  readonly #freshen: () => Promise<void> | undefined;
  #waiting: Request[] = [];
  #isAsking = false;

  constructor(freshen: () => Promise<void> | undefined) {
    this.#freshen = freshen;
  }

  /**
   * Calls `request` after the store was refreshed, with the error if that failed. Requests continue in order of
   * arrival.
   */
  wait(request: Request): void {
    this.#waiting.push(request);
    if (this.#isAsking) return;
    this.#isAsking = true;
    queueMicrotask(() => void this.#resume());
  }

  async #resume(): Promise<void> {
    while (this.#waiting.length > 0) {
      const requests = this.#waiting;
      this.#waiting = [];
      let failure: RankdError | undefined;
      try {
        const freshened = this.#freshen();
        if (freshened !== undefined) await freshened; // a promise costs time, and most stores need none
      } catch (error) {
        failure = asRankdError(error);
        // requests that arrived during the call would wait as long for the same error
        requests.push(...this.#waiting.splice(0));
      }
      for (const request of requests) request(failure);
    }
    this.#isAsking = false;
  }
}
