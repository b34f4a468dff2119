import { asRankdError, type RankdError } from '../base/errors.ts';

let waiting: Array<() => void> = [];

/**
 * Runs `work` at the end of this turn of the event loop, when everything that arrives in the turn was received. All work of a
 * turn runs without a pause, in order of arrival. It must not throw, or the rest would not run.
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
 * Lets requests go on once the store knows what changed before they were received. The store is asked once for all requests of
 * a turn, after the last of them was received. Requests that arrive while it is asked share the next question, unless this one fails.
 */
export class Freshness {
  readonly #freshen: () => Promise<void> | undefined;
  #waiting: Request[] = [];
  #isAsking = false;

  constructor(freshen: () => Promise<void> | undefined) {
    this.#freshen = freshen;
  }

  /** Calls `request` when the store was asked: with the error, if that failed. Requests go on in order of arrival. */
  wait(request: Request): void {
    this.#waiting.push(request);
    if (this.#isAsking) return;
    this.#isAsking = true;
    queueMicrotask(() => void this.#letGo());
  }

  async #letGo(): Promise<void> {
    while (this.#waiting.length > 0) {
      const requests = this.#waiting;
      this.#waiting = [];
      let failure: RankdError | undefined;
      try {
        const freshened = this.#freshen();
        if (freshened !== undefined) await freshened; // a promise costs time, and most stores need none
      } catch (error) {
        failure = asRankdError(error);
        requests.push(...this.#waiting.splice(0)); // those that arrived meanwhile would wait as long for the same
      }
      for (const request of requests) request(failure);
    }
    this.#isAsking = false;
  }
}
