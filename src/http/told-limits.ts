import type { Clock, LimitStore, SharedLimit } from '../ports/index.ts';

/** How often a node tells what it has let through, and of how many limits at once. */
const tellEveryMs = 250;
const maxTold = 1_000;
/** Callers can make up networks, so no more limits than these wait to be told. What is beyond them counts on this node alone. */
const maxWaiting = 10_000;

/** What this node has let through by itself and not told yet to those who share its store. */
export class ToldLimits {
  readonly #store: LimitStore;
  readonly #clock: Pick<Clock, 'sleep' | 'monotonic'>;
  readonly #correct: (limit: SharedLimit, left: number) => void;
  readonly #spent = new Map<string, { limit: SharedLimit; count: number; since: number }>();
  readonly #closing = new AbortController();
  #telling: Promise<void> | undefined;

  /** `correct` is told what is left of a limit, with what was let through meanwhile taken off. */
  constructor(
    { store, clock }: { store: LimitStore; clock: Pick<Clock, 'sleep' | 'monotonic'> },
    correct: (limit: SharedLimit, left: number) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#correct = correct;
  }

  note(limit: SharedLimit): void {
    const spent = this.#spent.get(limit.name);
    if (spent !== undefined) spent.count += 1;
    else if (this.#spent.size < maxWaiting)
      this.#spent.set(limit.name, { limit, count: 1, since: this.#clock.monotonic() });
    this.#telling ??= this.#tellSoon();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#telling;
  }

  async #tellSoon(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#spent.size > 0 && !signal.aborted) {
      await this.#clock.sleep(tellEveryMs, signal).catch(() => undefined);
      if (!signal.aborted) await this.#tell();
    }
    this.#telling = undefined;
  }

  async #tell(): Promise<void> {
    const told = [...this.#spent.values()].slice(0, maxTold);
    const now = this.#clock.monotonic();
    for (const { limit } of told) this.#spent.delete(limit.name);
    try {
      const left = await this.#store.spend(
        told.map(({ limit, count, since }) => ({ ...limit, count, agoMs: now - since })),
      );
      for (const [index, { limit }] of told.entries()) {
        this.#correct(limit, (left[index] ?? limit.burst) - (this.#spent.get(limit.name)?.count ?? 0));
      }
    } catch {
      // The store does not answer: this node goes on by what it has counted, and tells it later.
      for (const { limit, count, since } of told) {
        const later = this.#spent.get(limit.name)?.count ?? 0;
        this.#spent.set(limit.name, { limit, count: count + later, since });
      }
    }
  }
}
