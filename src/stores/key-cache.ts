import type { KeyRecord, KeyStore } from '../ports/index.ts';
import { type KeyQuery, KeyRecords } from './key-records.ts';

interface Source {
  lookUp(query: KeyQuery): KeyRecord | undefined;
  /** A value that differs once anything may have changed that `lookUp` reads. Throws if it can't be told. */
  changeToken(): string;
}

/** Remembers what a store has answered to `lookUpKey`, until `freshen` finds that its change token differs. */
export class KeyCache implements Pick<KeyStore, 'freshen' | 'lookUpKey'> {
  readonly #source: Source;
  readonly #records = new KeyRecords();
  #token: string | undefined;

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
