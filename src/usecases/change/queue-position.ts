import type { CallContext } from '../../ports/index.ts';
import type { MemberTurn } from './member-turns.ts';
import type { Ranking } from './ranking.ts';
import { isAbandoned, reconcileFirst } from './reconcile-change.ts';

const pollMs = 50;

/**
 * A change's position in the queue for its member, across all nodes. `MemberTurns` orders the changes of this process;
 * the store's queue orders changes from different nodes. A change joins the store's queue only if it has to wait, so an
 * uncontended change costs one round trip.
 */
export class QueuePosition implements AsyncDisposable {
  readonly #app: Ranking;
  readonly #rankeeId: number;
  readonly #turn: MemberTurn;
  #position: string | undefined;
  #joining: Promise<string> | undefined;

  constructor(app: Ranking, { rankeeId, lane }: { rankeeId: number; lane: string }) {
    this.#app = app;
    this.#rankeeId = rankeeId;
    this.#turn = app.turns.enqueue(rankeeId, lane);
    if (!this.#turn.isFirst) this.#join().catch(() => undefined); // `#isNext` rethrows the error
  }

  /**
   * Waits until all changes ahead of this one have ended, and reconciles any that were abandoned. Returns the id of the
   * member's newest change. Rejects if `call.signal` is aborted or a reconciliation fails.
   */
  async waitForTurn(call: CallContext): Promise<string | undefined> {
    return (await this.waitAndRead(call, async () => undefined)).after;
  }

  /**
   * Waits like `waitForTurn`, and also returns the result of `read`. `read` runs last in the round trip that finds
   * `after`, so its result is never older than that change.
   */
  async waitAndRead<T>(call: CallContext, read: () => Promise<T>): Promise<{ after: string | undefined; found: T }> {
    await this.#turn.waitForTurn(call.signal);
    for (;;) {
      // All three in one round trip. If another change begins between the responses, `beginChange` returns `stale`.
      const [isNext, { latestId, open }, found] = await Promise.all([
        this.#isNext(),
        this.#app.store.latestChange(this.#rankeeId),
        read(),
      ]);
      if (open !== undefined && isAbandoned(this.#app, open) && (await reconcileFirst(this.#app, open.change, call)))
        continue;
      if (open === undefined && isNext) return { after: latestId, found };
      await this.#join(); // from now on, later changes wait for this one, on every node
      await this.#app.clock.sleep(pollMs, call.signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#turn[Symbol.dispose]();
    const position = await this.#joining?.catch(() => undefined);
    // If this fails, the store releases the position itself once it is reachable again.
    if (position !== undefined) await this.#app.store.leave(position).catch(() => undefined);
  }

  async #isNext(): Promise<boolean> {
    const position = this.#turn.lowest(this.#position ?? (await this.#joining));
    const seen = await this.#app.store.queueState({ rankeeId: this.#rankeeId, position });
    this.#position = seen.position;
    return seen.isNext;
  }

  #join(): Promise<string> {
    this.#joining ??= this.#app.store.enqueue(this.#rankeeId).then((position) => {
      this.#turn.position = position;
      return position;
    });
    return this.#joining;
  }
}
