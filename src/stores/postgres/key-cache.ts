import type { KeyRecord, KeyStore } from '../../ports/index.ts';
import { type KeyQuery, KeyRecords } from '../key-records.ts';
import { accessVersion, lookUpKey } from './callers.ts';
import type { Database } from './engine/database.ts';
import { busy } from './engine/postgres-error.ts';

/** How long a request waits for what is asked of its key: less than the server has for other answers. */
const maxWaitMs = 2_000;

/**
 * Remembers what the database answered to `lookUpKey`, as long as `freshen` finds the version of access that it was read with. A new
 * connection may lead to another server, so nothing that was read through another one counts.
 */
export class VersionedKeys implements Pick<KeyStore, 'freshen' | 'lookUpKey'> {
  readonly #db: Database;
  readonly #now: () => number;
  readonly #records = new KeyRecords();
  #token: string | undefined;

  constructor(db: Database, now: () => number) {
    this.#db = db;
    this.#now = now;
  }

  async freshen(): Promise<void> {
    const token = tokenOf(await inTime(accessVersion(this.#db)));
    if (token !== this.#token) this.#records.clear();
    this.#token = token;
  }

  lookUpKey(query: KeyQuery): KeyRecord | undefined | Promise<KeyRecord | undefined> {
    const known = this.#records.get(query);
    return known === undefined ? this.#lookUp(query) : (known ?? undefined);
  }

  async #lookUp(query: KeyQuery): Promise<KeyRecord | undefined> {
    const { record, ...read } = await inTime(lookUpKey(this.#db, { ...query, now: this.#now() }));
    if (tokenOf(read) === this.#token) this.#records.set(query, record);
    return record;
  }
}

function tokenOf({ sessionId, version }: { sessionId: number; version: number }): string {
  return `${sessionId}:${version}`;
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => reject(busy(new Error(`no answer in ${maxWaitMs} ms`))), maxWaitMs);
  answer.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}
