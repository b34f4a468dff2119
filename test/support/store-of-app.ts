import { cpSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import type { ServerAddress } from '../../src/base/net.ts';
import type { Clock, StoreEngine } from '../../src/ports/index.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { waitAlsoFor } from './manual-clock.ts';
import { createPostgresDatabase, onServer, type PostgresDatabase } from './postgres-database.ts';
import { tempDir } from './temp-dir.ts';

/** True if RANKD_TEST_STORE is postgres. Each daemon in this process then gets its own PostgreSQL database. */
export const isOnPostgres = process.env['RANKD_TEST_STORE'] === 'postgres';

interface StoreOfApp {
  database: PostgresDatabase;
  /** True if no other test may reuse the database. */
  isSpoiled: boolean;
}

/** The databases, keyed by data directory, for tests that reopen a directory. */
const stores = new Map<string, StoreOfApp>();

/** Returns the `store` setting of a daemon's configuration; nothing on SQLite. */
export async function storeOf(dataDir: string): Promise<{ store?: ServerAddress }> {
  if (!isOnPostgres) return {};
  countQueries();
  // loaded now, because manual clocks would not wait for the first daemon to load it
  await counted(import('../../src/stores/postgres/postgres-store.ts'));
  const place = stores.get(dataDir) ?? { database: await counted(createPostgresDatabase()), isSpoiled: false };
  stores.set(dataDir, place);
  return { store: place.database.address };
}

/** Returns a second engine on a daemon's data. */
export function secondEngine(dataDir: string, clock: Clock): StoreEngine {
  return engineOf({ dataDir, clock, server: stores.get(dataDir)?.database.address });
}

/** Returns a new data directory with the data that the daemon of `dataDir` would leave behind if it were killed now. */
export function asIfKilled(dataDir: string): string {
  const copy = tempDir();
  const shared = stores.get(dataDir);
  if (shared !== undefined) stores.set(copy, { ...shared, isSpoiled: true });
  else cpSync(dataDir, copy, { recursive: true });
  return copy;
}

/** Runs SQL on a daemon's data, on a new connection. */
export async function runSql(dataDir: string, sql: { sqlite: string; postgres: string }): Promise<void> {
  const place = stores.get(dataDir);
  if (place === undefined) {
    const db = new Sqlite(join(dataDir, 'rankd.db'));
    db.exec(sql.sqlite);
    db.close();
    return;
  }
  place.isSpoiled = true;
  await onServer(place.database.address, sql.postgres);
}

/** Makes the database available to later tests, unless it is spoiled. */
export async function returnStore(dataDir: string): Promise<void> {
  const place = stores.get(dataDir);
  stores.delete(dataDir);
  if (place?.isSpoiled === false) await place.database[Symbol.asyncDispose]();
}

let pendingQueries = 0;
let isCounting = false;

/** Makes manual clocks wait for PostgreSQL's responses, as they already do for SQLite's. */
function countQueries(): void {
  if (isCounting) return;
  isCounting = true;
  const { query, connect } = pg.Client.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
  const counting = (ask: typeof query) =>
    function (this: unknown, ...args: unknown[]) {
      const answer = ask?.apply(this, args);
      return answer instanceof Promise ? counted(answer) : answer;
    };
  Object.assign(pg.Client.prototype, { query: counting(query), connect: counting(connect) });
  waitAlsoFor(() => pendingQueries > 0);
}

function counted<T>(answer: Promise<T>): Promise<T> {
  pendingQueries += 1;
  const end = () => {
    pendingQueries -= 1;
  };
  answer.then(end, end);
  return answer;
}
