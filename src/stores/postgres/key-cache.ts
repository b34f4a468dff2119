import type { KeyRecord, KeyStore } from '../../ports/index.ts';
import { type KeyQuery, KeyRecords } from '../key-cache.ts';
import { type RecordRow, recordColumns, toRecord } from '../sql/callers.ts';
import type { Database } from './engine/database.ts';
import { busy } from './engine/postgres-error.ts';
import { postgresDialect as sql } from './engine/statements.ts';

/** The timeout for `freshen` and for a key lookup, shorter than for other queries. */
const maxWaitMs = 2_000;

/**
 * Caches the results of `lookUpKey` until `freshen` finds a different access version. A new connection also clears the
 * cache, because it may reach a different server.
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
  const timer = setTimeout(() => reject(busy(new Error(`no response within ${maxWaitMs} ms`))), maxWaitMs);
  answer.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}

/** Finds the key with the given secret, whatever its state, and the access version at that moment. */
async function lookUpKey(
  db: Database,
  query: KeyQuery & { now: number },
): Promise<{ record: KeyRecord | undefined; version: number; sessionId: number }> {
  const { rows, sessionId } = await db.ask<VersionedRow>(bySecretSql, { ...query });
  const [{ version, ...row } = { version: 0, secretId: null }] = rows;
  const record = row.secretId === null ? undefined : toRecord(row, query.placeId, sql);
  return { record, version, sessionId };
}

type VersionedRow = { version: number } & (RecordRow | { secretId: null });

/** Returns the access version even if no key has this secret. */
const bySecretSql = `
  SELECT v.version, ${recordColumns(sql)}
  FROM rankd.access_version AS v
  CROSS JOIN rankd.workspace AS w
  LEFT JOIN rankd.key_secrets AS secret ON secret.hash = decode(@hash, 'hex')
  LEFT JOIN rankd.keys AS k ON k.id = secret.key_id
  LEFT JOIN rankd.whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId`;

/**
 * Reads the access version, together with the id of the session that read it. Every change to keys, secrets,
 * whitelisted places or the workspace increments the version.
 */
async function accessVersion(db: Database): Promise<{ version: number; sessionId: number }> {
  const { rows, sessionId } = await db.ask<{ version: number }>('SELECT version FROM rankd.access_version');
  return { version: rows[0]?.version ?? 0, sessionId };
}
