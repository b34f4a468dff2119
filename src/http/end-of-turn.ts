import { asRankdError, type RankdError } from '../base/errors.ts';

let waiting: Array<() => void> = [];

/**
 * Runs `task` at the end of this turn of the event loop, after the turn's input has been received. All the work of one
 * turn runs synchronously, in order of arrival. `task` must not throw, because the rest would not run.
 */
export function atEndOfTurn(task: () => void): void {
  if (waiting.push(task) === 1) setImmediate(runAll);
}

function runAll(): void {
  const tasks = waiting;
  waiting = [];
  for (const task of tasks) task();
}

type Request = (failure?: RankdError) => void;

/**
 * Refreshes the store before requests are handled, so that each request sees all changes made before it arrived. One
 * refresh serves all requests of a turn, and starts after the last of them has arrived. Requests that arrive during a
 * refresh share the next one or, if the current one fails, its error.
 */
export class Freshness {
  readonly #freshen: () => Promise<void> | undefined;
  #waiting: Request[] = [];
  #isRefreshing = false;

  constructor(freshen: () => Promise<void> | undefined) {
    this.#freshen = freshen;
  }

  /**
   * Calls `request` after the next refresh, with the error if the refresh failed. Calls waiting requests in order of
   * arrival.
   */
  wait(request: Request): void {
    this.#waiting.push(request);
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    queueMicrotask(() => void this.#resume());
  }

  async #resume(): Promise<void> {
    while (this.#waiting.length > 0) {
      const requests = this.#waiting;
      this.#waiting = [];
      let failure: RankdError | undefined;
      try {
        const freshened = this.#freshen();
        if (freshened !== undefined) await freshened; // SQLite's store returns undefined, and awaiting costs time
      } catch (error) {
        failure = asRankdError(error);
        // a separate refresh for later requests would take as long and fail in the same way
        requests.push(...this.#waiting.splice(0));
      }
      for (const request of requests) request(failure);
    }
    this.#isRefreshing = false;
  }
}
