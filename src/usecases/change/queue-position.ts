import type { MemberTurn } from './member-turns.ts';
import { backgroundDeadlineMs, type Ranking } from './ranking.ts';

type Line = Pick<Ranking, 'turns' | 'store' | 'holder' | 'deadlineMs' | 'platform'>;

/**
 * A change's place among all changes of its member, across processes, from when it is made. Within a process the member's turns
 * keep the order; a ticket in the store keeps it towards other processes. It is taken only where there is something to wait for:
 * an undisturbed change pays one read.
 */
export class QueuePosition implements AsyncDisposable {
  readonly rankeeId: number;
  readonly #app: Line;
  readonly #turn: MemberTurn;
  #place: number | undefined;
  #ticket: Promise<number> | undefined;

  constructor(app: Line, { rankeeId, lane }: { rankeeId: number; lane: string }) {
    this.rankeeId = rankeeId;
    this.#app = app;
    this.#turn = app.turns.arrive(rankeeId, lane);
    if (!this.#turn.isFirst) this.#ticket = this.#takeTicket();
    this.#ticket?.catch(() => undefined); // told by isNext
  }

  /** Resolves when everyone of this process who came before is through; rejects where `signal` is aborted before that. */
  turn(signal: AbortSignal): Promise<void> {
    return this.#turn.comes(signal);
  }

  /** True where nobody in another process came before. */
  async isNext(): Promise<boolean> {
    const { store, holder } = this.#app;
    const place = this.#place ?? (await this.#ticket);
    const seen = await store.lookAhead({ rankeeId: this.rankeeId, holder, ...(place !== undefined && { place }) });
    this.#place = seen.place;
    return seen.isNext;
  }

  /** Makes those who arrive later, in any process, wait for this one. */
  async hold(): Promise<void> {
    this.#ticket ??= this.#takeTicket();
    await this.#ticket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#turn[Symbol.dispose]();
    const ticket = await this.#ticket?.catch(() => undefined);
    // What can't be given back expires by itself.
    if (ticket !== undefined) await this.#app.store.giveBack(ticket).catch(() => undefined);
  }

  #takeTicket(): Promise<number> {
    const { store, holder } = this.#app;
    return store.takeTicket({ rankeeId: this.rankeeId, holder, lifeMs: backgroundDeadlineMs(this.#app) });
  }
}
