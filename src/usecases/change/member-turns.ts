import { abortable } from '../../base/clock.ts';

/**
 * The maximum number of changes of one lane that wait for a member. Further ones could not meet their deadline, and
 * would delay other callers.
 */
export const maxOfALane = 10;

/** A position in the queue for a member. Disposing it passes the turn on. */
export interface MemberTurn extends Disposable {
  /** True if it is the first. */
  isFirst: boolean;
  /** The position in the queue that all nodes share, once it has joined. */
  position: string | undefined;
  /**
   * The lowest of `position` and those of all turns of the member here. The first change of a node may join the shared
   * queue after those behind it. If it waited at its own position, two nodes could wait for each other.
   */
  lowest(position: string | undefined): string | undefined;
  /** Resolves once all earlier ones have finished. Rejects if `signal` is aborted before that. */
  waitForTurn(signal: AbortSignal): Promise<void>;
}

/** One change at a time for each member, in order of arrival. Different members do not wait for each other. */
export class MemberTurns {
  readonly #last = new Map<number, Promise<void>>();
  readonly #ofMember = new Map<number, Set<MemberTurn>>();
  /** The number of turns, including waiting ones, by member and lane. */
  readonly #inLine = new Map<string, number>();

  /** True if the lane may add no more. */
  isCrowded(userId: number, lane: string): boolean {
    return (this.#inLine.get(`${userId} ${lane}`) ?? 0) >= maxOfALane;
  }

  /** True if a change has the turn, or waits for it. */
  isTaken(userId: number): boolean {
    return this.#last.has(userId);
  }

  /** Takes the next position synchronously: no later call gets an earlier one. */
  enqueue(userId: number, lane: string): MemberTurn {
    const share = `${userId} ${lane}`;
    this.#inLine.set(share, (this.#inLine.get(share) ?? 0) + 1);
    const before = this.#last.get(userId);
    const { promise: through, resolve: pass } = Promise.withResolvers<void>();
    this.#last.set(userId, through);
    const turns = this.#ofMember.get(userId) ?? new Set();
    this.#ofMember.set(userId, turns);
    const turn: MemberTurn = {
      isFirst: before === undefined,
      position: undefined,
      lowest: (position) => {
        const all = [position, ...[...turns].map((other) => other.position)].filter((one) => one !== undefined);
        return all.sort((one, other) => Number(one) - Number(other))[0];
      },
      waitForTurn: async (signal) => {
        signal.throwIfAborted();
        if (before !== undefined) await abortable(before, signal);
      },
      [Symbol.dispose]: () => {
        const left = (this.#inLine.get(share) ?? 0) - 1;
        if (left > 0) this.#inLine.set(share, left);
        else this.#inLine.delete(share);
        turns.delete(turn);
        if (turns.size === 0) this.#ofMember.delete(userId);
        // If this one gives up, the next one still waits for the earlier ones.
        void Promise.resolve(before).then(pass);
        void through.then(() => {
          if (this.#last.get(userId) === through) this.#last.delete(userId);
        });
      },
    };
    turns.add(turn);
    return turn;
  }
}
