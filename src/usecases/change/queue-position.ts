import type { CallContext } from '../../ports/index.ts';
import type { MemberTurn } from './member-turns.ts';
import type { Ranking } from './ranking.ts';
import { isAbandoned, reconcileFirst } from './reconcile-change.ts';

const pollMs = 50;

/**
 * A change's position among all changes of its member, over all nodes, from when it is made. Within this process, the member's
 * turns keep the order; between nodes, the store's queue does. The queue is joined only if there is something to wait for, so an
 * undisturbed change costs one read.
 */
export class QueuePosition implements AsyncDisposable {
  readonly #app: Ranking;
  readonly #rankeeId: number;
  readonly #turn: MemberTurn;
  #position: string | undefined;
  #joining: Promise<string> | undefined;
  #watch: Disposable | undefined;
  #wake: () => void = () => undefined;

  constructor(app: Ranking, { rankeeId, lane }: { rankeeId: number; lane: string }) {
    this.#app = app;
    this.#rankeeId = rankeeId;
    this.#turn = app.turns.arrive(rankeeId, lane);
    if (!this.#turn.isFirst) this.#join().catch(() => undefined); // `#isNext` throws it
  }

  /**
   * Resolves once everyone ahead is through and the member has no open change: one that nobody works on any more is reconciled
   * first. Resolves with the id of the member's newest change. Rejects if `call.signal` is aborted before that.
   */
  async comes(call: CallContext): Promise<string | undefined> {
    return (await this.comesWith(call, async () => undefined)).after;
  }

  /** The same, with what `look` finds as the turn comes. It is asked last and in the same trip, so it is never older than the newest change. */
  async comesWith<T>(call: CallContext, look: () => Promise<T>): Promise<{ after: string | undefined; found: T }> {
    await this.#turn.comes(call.signal);
    for (;;) {
      const moved = this.#moved();
      // In one trip: whoever begins a change between the answers makes this one stale when it begins.
      const [isNext, { latestId, open }, found] = await Promise.all([
        this.#isNext(),
        this.#app.store.latestChange(this.#rankeeId),
        look(),
      ]);
      if (open !== undefined && isAbandoned(this.#app, open) && (await reconcileFirst(this.#app, open.change, call)))
        continue;
      if (open === undefined && isNext) return { after: latestId, found };
      await this.#join(); // later changes, on any node, wait for this one
      this.#watch ??= this.#app.store.watchQueue(this.#rankeeId, () => this.#wake());
      await Promise.race([this.#app.clock.sleep(pollMs, call.signal), moved]);
    }
  }

  /** Resolves once the store tells that the queue has moved. */
  #moved(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#turn[Symbol.dispose]();
    this.#watch?.[Symbol.dispose]();
    const position = await this.#joining?.catch(() => undefined);
    // The store itself gives up a position that could not be left, as soon as it answers.
    if (position !== undefined) await this.#app.store.leave(position).catch(() => undefined);
  }

  /** True if nobody on another node is ahead. */
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
