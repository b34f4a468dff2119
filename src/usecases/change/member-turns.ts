import { abortable } from '../../base/abortable.ts';

/** So many of one lane may be in a member's line: more would wait in vain, and take their time from all others in it. */
export const maxOfALane = 10;

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
  /** How many are in line, by member and lane. */
  readonly #inLine = new Map<string, number>();

  /** True where the lane has its share of the line. */
  isCrowded(userId: number, lane: string): boolean {
    return (this.#inLine.get(`${userId} ${lane}`) ?? 0) >= maxOfALane;
  }

  /** Takes the next place, at once: before anything is waited for. */
  arrive(userId: number, lane: string): MemberTurn {
    const share = `${userId} ${lane}`;
    this.#inLine.set(share, (this.#inLine.get(share) ?? 0) + 1);
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
        const left = (this.#inLine.get(share) ?? 0) - 1;
        if (left > 0) this.#inLine.set(share, left);
        else this.#inLine.delete(share);
        // Whoever gave up waiting still lets the ones before it finish first.
        void Promise.resolve(before).then(pass);
        void through.then(() => {
          if (this.#last.get(userId) === through) this.#last.delete(userId);
        });
      },
    };
  }
}
