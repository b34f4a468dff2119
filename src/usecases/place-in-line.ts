import type { Ranking } from './ranking.ts';

/**
 * A change's place among all changes of its member, across processes. Within a process the member's turns keep the order;
 * a ticket in the store keeps it towards other processes. It is taken only where there is something to wait for: an
 * undisturbed change pays one read.
 */
export class PlaceInLine implements AsyncDisposable {
  readonly #app: Pick<Ranking, 'store' | 'holder' | 'deadlineMs'>;
  readonly #rankeeId: number;
  #place: number | undefined;
  #ticket: Promise<number> | undefined;

  /** `mustWait`: others of this process are before it. */
  constructor(
    app: Pick<Ranking, 'store' | 'holder' | 'deadlineMs'>,
    { rankeeId, mustWait }: { rankeeId: number; mustWait: boolean },
  ) {
    this.#app = app;
    this.#rankeeId = rankeeId;
    if (mustWait) this.#ticket = this.#takeTicket();
    this.#ticket?.catch(() => undefined); // told by isNext
  }

  /** True where nobody in another process came before. */
  async isNext(): Promise<boolean> {
    const { store, holder } = this.#app;
    const place = this.#place ?? (await this.#ticket);
    const seen = await store.lookAhead({ rankeeId: this.#rankeeId, holder, ...(place !== undefined && { place }) });
    this.#place = seen.place;
    return seen.isNext;
  }

  /** Makes those who arrive later, in any process, wait for this one. */
  async hold(): Promise<void> {
    this.#ticket ??= this.#takeTicket();
    await this.#ticket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ticket = await this.#ticket?.catch(() => undefined);
    // What can't be given back expires by itself.
    if (ticket !== undefined) await this.#app.store.giveBack(ticket).catch(() => undefined);
  }

  #takeTicket(): Promise<number> {
    const { store, holder, deadlineMs } = this.#app;
    return store.takeTicket({ rankeeId: this.#rankeeId, holder, lifeMs: deadlineMs });
  }
}
