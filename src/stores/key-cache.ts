import type { KeyRecord, KeyStore } from '../ports/index.ts';

interface Query {
  hash: string;
  placeId: number;
}

interface Source {
  lookUp(query: Query): KeyRecord | undefined;
  /** A value that differs once anything may have changed that `lookUp` reads. Throws if it can't be told. */
  changeToken(): string;
}

/** Enough for every key of a group at each of its places. Secrets that callers make up must not fill the memory. */
const maxEntries = 10_000;

/** Remembers what a store has answered to `lookUpKey`, until `freshen` finds that its change token differs. */
export class KeyCache implements Pick<KeyStore, 'freshen' | 'lookUpKey'> {
  readonly #source: Source;
  /** By hash, then by place: to put the two together for each look-up would cost more than both. */
  readonly #records = new Map<string, Map<number, KeyRecord | undefined>>();
  #size = 0;
  #token: string | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  freshen(): Promise<void> | undefined {
    try {
      const token = this.#source.changeToken();
      if (token !== this.#token) this.#forget();
      this.#token = token;
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  lookUpKey(query: Query): KeyRecord | undefined {
    const places = this.#records.get(query.hash);
    if (places?.has(query.placeId)) return places.get(query.placeId);
    const record = this.#source.lookUp(query);
    this.#remember(query, record);
    return record;
  }

  #remember({ hash, placeId }: Query, record: KeyRecord | undefined): void {
    if (this.#size >= maxEntries) this.#forget();
    this.#size += 1;
    const places = this.#records.get(hash);
    if (places === undefined) this.#records.set(hash, new Map([[placeId, record]]));
    else places.set(placeId, record);
  }

  #forget(): void {
    this.#records.clear();
    this.#size = 0;
  }
}
