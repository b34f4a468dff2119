import { abortable } from '../abortable.ts';

/** One at a time per member, in order of arrival; different members do not wait for each other. */
export class MemberTurns {
  readonly #last = new Map<number, Promise<void>>();

  /** True where somebody has the member's turn or waits for it. */
  isBusy(userId: number): boolean {
    return this.#last.has(userId);
  }

  /** Runs `work` when everyone who came before for this member is through; rejects where `signal` is aborted before that. */
  async run<T>(userId: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(userId);
    const { promise: through, resolve: pass } = Promise.withResolvers<void>();
    this.#last.set(userId, through);
    try {
      signal.throwIfAborted();
      if (before !== undefined) await abortable(before, signal);
      return await work();
    } finally {
      // Whoever gave up waiting still lets the ones before it finish first.
      void Promise.resolve(before).then(pass);
      void through.then(() => {
        if (this.#last.get(userId) === through) this.#last.delete(userId);
      });
    }
  }
}
