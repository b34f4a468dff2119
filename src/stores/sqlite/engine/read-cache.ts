import type { Connection } from './connection.ts';

/** Enough for every key of a group at each of its places; secrets that callers make up must not fill the memory. */
const maxEntries = 10_000;

/**
 * What was read from the database, kept until this process writes to the tables or another process commits anything. Whether one did is
 * asked once for all that is asked for without a pause: nothing is received meanwhile, so that no request is answered from before a
 * commit that it was sent after.
 */
export class ReadCache<T> {
  readonly #db: Connection;
  readonly #entries = new Map<string, Map<number, T>>();
  #size = 0;
  #othersVersion = -1;
  /** What became of asking; until the next microtask, so that nothing can have been received since. */
  #asked: { failure?: unknown } | undefined;

  /** `tables`: all that is read from. */
  constructor(db: Connection, tables: readonly string[]) {
    this.#db = db;
    db.watch(tables, () => this.#forget());
  }

  /**
   * What `read` returns, of a state of the database that is not older than what the process received last. Shared by all who ask: not to be
   * changed. What it is kept by is two parts: to put them together would cost more than both look-ups.
   */
  get(name: string, id: number, read: () => T): T {
    this.#forgetOthersWrites();
    const named = this.#entries.get(name);
    const kept = named?.get(id);
    if (kept !== undefined || named?.has(id)) return kept as T;
    const value = read();
    if (this.#size >= maxEntries) this.#forget();
    this.#entries.set(name, (this.#entries.get(name) ?? new Map<number, T>()).set(id, value));
    this.#size += 1;
    return value;
  }

  #forget(): void {
    this.#entries.clear();
    this.#size = 0;
  }

  /** Throws where it can't be told, to all: each of them would wait for the lock of another process anew. */
  #forgetOthersWrites(): void {
    if (this.#asked === undefined) {
      this.#asked = this.#askForOthersWrites();
      queueMicrotask(() => {
        this.#asked = undefined;
      });
    }
    if ('failure' in this.#asked) throw this.#asked.failure;
  }

  #askForOthersWrites(): { failure?: unknown } {
    try {
      const { othersVersion } = this.#db;
      if (othersVersion !== this.#othersVersion) this.#forget();
      this.#othersVersion = othersVersion;
      return {};
    } catch (failure) {
      return { failure };
    }
  }
}
