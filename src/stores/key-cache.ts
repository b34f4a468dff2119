import type { KeyRecord, KeyStore } from '../ports/index.ts';

interface Source {
  lookUp(query: KeyQuery): KeyRecord | undefined;
  /**
   * Returns a token that changes whenever the result of a lookup may have changed. Throws if the store can't be read.
   */
  changeToken(): string | number;
}

/** Caches the results of `lookUpKey` until `freshen` reads a different change token. */
export class KeyCache implements Pick<KeyStore, 'freshen' | 'lookUpKey'> {
  readonly #source: Source;
  readonly #records = new KeyRecords();
  #token: string | number | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  freshen(): Promise<void> | undefined {
    try {
      const token = this.#source.changeToken();
      if (token !== this.#token) this.#records.clear();
      this.#token = token;
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  lookUpKey(query: KeyQuery): KeyRecord | undefined {
    const known = this.#records.get(query);
    if (known !== undefined) return known ?? undefined;
    const record = this.#source.lookUp(query);
    this.#records.set(query, record);
    return record;
  }
}

export interface KeyQuery {
  hash: string;
  placeId: number;
}

/**
 * Enough for every key of a group in each of its places. The cache needs a limit because callers can send made-up
 * secrets.
 */
const maxEntries = 10_000;

export class KeyRecords {
  /** Keyed by hash, then by place: building a combined key would cost more than a second lookup. */
  readonly #records = new Map<string, Map<number, KeyRecord | null>>();
  #size = 0;

  /** Returns `null` if the store has no such key, and `undefined` if the result is not cached. */
  get({ hash, placeId }: KeyQuery): KeyRecord | null | undefined {
    return this.#records.get(hash)?.get(placeId);
  }

  set({ hash, placeId }: KeyQuery, record: KeyRecord | undefined): void {
    if (this.#size >= maxEntries) this.clear();
    this.#size += 1;
    const places = this.#records.get(hash);
    if (places === undefined) this.#records.set(hash, new Map([[placeId, record ?? null]]));
    else places.set(placeId, record ?? null);
  }

  clear(): void {
    this.#records.clear();
    this.#size = 0;
  }
}
