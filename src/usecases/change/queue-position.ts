import type { CallContext } from '../../ports/index.ts';
import type { MemberTurn } from './member-turns.ts';
import type { Ranking } from './ranking.ts';
import { isAbandoned, reconcileFirst } from './reconcile-change.ts';

const pollMs = 50;

/**
 * A change's position among all changes of its member, over all nodes, from its creation. Within this process, the
 * member's turns define the order; between nodes, the store's queue does. A change joins the queue only if it must
 * wait, so an undisturbed change costs one read.
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
    if (!this.#turn.isFirst) this.#join().catch(() => undefined); // `#isNext` throws it
  }

  /**
   * Resolves once all earlier changes have finished and the member has no open change: an abandoned one is reconciled
   * first. Resolves with the id of the member's newest change. Rejects if `call.signal` is aborted before that.
   */
  async waitForTurn(call: CallContext): Promise<string | undefined> {
    return (await this.waitAndRead(call, async () => undefined)).after;
  }

  /**
   * The same, together with the result of `read` at the time of the turn. It is read last and in the same trip, so it
   * is never older than the newest change.
   */
  async waitAndRead<T>(call: CallContext, read: () => Promise<T>): Promise<{ after: string | undefined; found: T }> {
    await this.#turn.waitForTurn(call.signal);
    for (;;) {
      // In one trip: a change that begins between the answers makes this one stale when it begins.
      const [isNext, { latestId, open }, found] = await Promise.all([
        this.#isNext(),
        this.#app.store.latestChange(this.#rankeeId),
        read(),
      ]);
      if (open !== undefined && isAbandoned(this.#app, open) && (await reconcileFirst(this.#app, open.change, call)))
        continue;
      if (open === undefined && isNext) return { after: latestId, found };
      await this.#join(); // later changes, on any node, wait for this one
      await this.#app.clock.sleep(pollMs, call.signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#turn[Symbol.dispose]();
    const position = await this.#joining?.catch(() => undefined);
    // The store itself releases a position whose release failed, as soon as it responds.
    if (position !== undefined) await this.#app.store.leave(position).catch(() => undefined);
  }

  /** True if no change on another node is ahead. */
  async #isNext(): Promise<boolean> {
    const position = this.#turn.lowest(this.#position ?? (await this.#joining));
    const seen = await this.#app.store.queueStanding({ rankeeId: this.#rankeeId, position });
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
