import { abortable } from '../abortable.ts';

/** A place among those who want a member's turn; disposing it passes the turn on. */
export interface MemberTurn extends Disposable {
  /** True where nobody is before it. */
  isFirst: boolean;
  /** Resolves when everyone who came before for this member is through; rejects where `signal` is aborted before that. */
  comes(signal: AbortSignal): Promise<void>;
}

/** One at a time per member, in order of arrival; different members do not wait for each other. */
export class MemberTurns {
  readonly #last = new Map<number, Promise<void>>();

  /** Takes the next place, at once: before anything is waited for. */
  arrive(userId: number): MemberTurn {
    const before = this.#last.get(userId);
    const { promise: through, resolve: pass } = Promise.withResolvers<void>();
    this.#last.set(userId, through);
    return {
      isFirst: before === undefined,
      comes: async (signal) => {
        signal.throwIfAborted();
        if (before !== undefined) await abortable(before, signal);
      },
      [Symbol.dispose]: () => {
        // Whoever gave up waiting still lets the ones before it finish first.
        void Promise.resolve(before).then(pass);
        void through.then(() => {
          if (this.#last.get(userId) === through) this.#last.delete(userId);
        });
      },
    };
  }
}
