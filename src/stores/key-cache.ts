import type { KeyRecord, KeyStore } from '../ports/index.ts';

interface Source {
  lookUp(query: KeyQuery): KeyRecord | undefined;
  /** A value that differs once anything may have changed that `lookUp` reads. Throws if it can't be read. */
  changeToken(): string | number;
}

/** Remembers a store's answers to `lookUpKey`, until `freshen` finds that its change token differs. */
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

/** The question of a key lookup. */
export interface KeyQuery {
  hash: string;
  placeId: number;
}

/** Enough for every key of a group at each of its places. Invented secrets must not fill the memory. */
const maxEntries = 10_000;

/** A store's answers to `lookUpKey`, while they are valid. */
export class KeyRecords {
  /** By hash, then by place: joining the two for each look-up would cost more than both look-ups. */
  readonly #records = new Map<string, Map<number, KeyRecord | null>>();
  #size = 0;

  /** `null` if the store knew no such key; `undefined` if it was not asked. */
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
