import { abortable } from '../../base/clock.ts';

/**
 * `changeRank` refuses a change if its member and lane already have this many running and waiting changes, because the
 * change would miss its deadline and delay other callers.
 */
export const maxPerLane = 10;

/** A position in this process's queue for a member. Disposing it gives the turn to the next change. */
export interface MemberTurn extends Disposable {
  /** True if the queue was empty when this change joined it. */
  isFirst: boolean;
  /** The position in the queue shared by all nodes; `undefined` until this change joins that queue. */
  position: string | undefined;
  /**
   * Returns the lowest of `position` and the positions of this process's turns for the member. The change at the head
   * of this process's queue may join the shared queue after the changes behind it: if each change waited for its own
   * position, two nodes could deadlock.
   */
  lowest(position: string | undefined): string | undefined;
  /** Resolves once all earlier turns have ended. Rejects if `signal` is aborted first. */
  waitForTurn(signal: AbortSignal): Promise<void>;
}

/**
 * Admits one change per member at a time, in order of arrival. Changes to different members do not wait for each other.
 */
export class MemberTurns {
  readonly #last = new Map<number, Promise<void>>();
  readonly #ofMember = new Map<number, Set<MemberTurn>>();
  /** The number of running and waiting turns, keyed by member and lane. */
  readonly #counts = new Map<string, number>();

  isFull(userId: number, lane: string): boolean {
    return (this.#counts.get(`${userId} ${lane}`) ?? 0) >= maxPerLane;
  }

  /** True if a change to the member is running or waiting. */
  isTaken(userId: number): boolean {
    return this.#last.has(userId);
  }

  /** Synchronous, so that positions follow the order of the calls. */
  enqueue(userId: number, lane: string): MemberTurn {
    const slot = `${userId} ${lane}`;
    this.#counts.set(slot, (this.#counts.get(slot) ?? 0) + 1);
    const before = this.#last.get(userId);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last.set(userId, ended);
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
        const left = (this.#counts.get(slot) ?? 0) - 1;
        if (left > 0) this.#counts.set(slot, left);
        else this.#counts.delete(slot);
        turns.delete(turn);
        if (turns.size === 0) this.#ofMember.delete(userId);
        // Even if this turn is disposed early, the next one waits for the turns before this one.
        void Promise.resolve(before).then(end);
        void ended.then(() => {
          if (this.#last.get(userId) === ended) this.#last.delete(userId);
        });
      },
    };
    turns.add(turn);
    return turn;
  }
}
