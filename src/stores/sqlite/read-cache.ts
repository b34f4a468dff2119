import type { Connection } from './connection.ts';

/** Enough for every key of a group at each of its places; secrets that callers make up must not fill the memory. */
const mostEntries = 10_000;

/**
 * What was read from the database, kept until anything is committed to it, by this process or another. That is asked each time:
 * an answer that is older, and be it from the same turn of the event loop, could let through a request that was sent after a key
 * had been revoked.
 */
export class ReadCache<T> {
  readonly #db: Connection;
  readonly #entries = new Map<string, T>();
  #ownWrites = -1;
  #othersVersion = -1;

  constructor(db: Connection) {
    this.#db = db;
  }

  /** What `read` returns, of this state of the database. Shared by all who ask: not to be changed. */
  get(name: string, read: () => T): T {
    this.#forgetWhatChanged();
    const kept = this.#entries.get(name);
    if (kept !== undefined || this.#entries.has(name)) return kept as T;
    const value = read();
    if (this.#entries.size >= mostEntries) this.#entries.clear();
    this.#entries.set(name, value);
    return value;
  }

  #forgetWhatChanged(): void {
    const { ownWrites, othersVersion } = this.#db;
    if (ownWrites === this.#ownWrites && othersVersion === this.#othersVersion) return;
    this.#entries.clear();
    this.#ownWrites = ownWrites;
    this.#othersVersion = othersVersion;
  }
}
