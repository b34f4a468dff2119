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

/**
 * With RANKD_TEST_STORE=postgres, the daemons of tests in this process store their data in PostgreSQL, each in a
 * separate database.
 */
export const isOnPostgres = process.env['RANKD_TEST_STORE'] === 'postgres';

interface Kept {
  database: PostgresDatabase;
  /** No other test may get it afterwards. */
  isSpoiled: boolean;
}

/** By data directory: a test that opens a directory again finds its database again. */
const kept = new Map<string, Kept>();

/** The store of a daemon on a data directory, chosen by its configuration. */
export async function storeOf(dataDir: string): Promise<{ store?: ServerAddress }> {
  if (!isOnPostgres) return {};
  countQuestions();
  // otherwise, the first daemon would load it, and no clock waits for that
  await counted(import('../../src/stores/postgres/postgres-store.ts'));
  const place = kept.get(dataDir) ?? { database: await counted(createPostgresDatabase()), isSpoiled: false };
  kept.set(dataDir, place);
  return { store: place.database.address };
}

/** A second handle on the same data. */
export function engineBeside(dataDir: string, clock: Clock): StoreEngine {
  return engineOf({ dataDir, clock, server: kept.get(dataDir)?.database.address });
}

/**
 * The data directory of a daemon that starts on the data that the daemon of `dataDir` would leave if it were killed
 * now.
 */
export function asIfKilled(dataDir: string): string {
  const copy = tempDir();
  const shared = kept.get(dataDir);
  if (shared !== undefined) kept.set(copy, { ...shared, isSpoiled: true });
  else cpSync(dataDir, copy, { recursive: true });
  return copy;
}

/** Runs a text of SQL on the data as another client. */
export async function runSql(dataDir: string, sql: { sqlite: string; postgres: string }): Promise<void> {
  const place = kept.get(dataDir);
  if (place === undefined) {
    const db = new Sqlite(join(dataDir, 'rankd.db'));
    db.exec(sql.sqlite);
    db.close();
    return;
  }
  place.isSpoiled = true;
  await onServer(place.database.address, sql.postgres);
}

/** Called at the end of a test. */
export async function giveBackStore(dataDir: string): Promise<void> {
  const place = kept.get(dataDir);
  kept.delete(dataDir);
  if (place?.isSpoiled === false) await place.database[Symbol.asyncDispose]();
}

let questions = 0;
let isCounting = false;

/** Makes test-driven clocks wait for the answers of PostgreSQL, as they already do for SQLite. */
function countQuestions(): void {
  if (isCounting) return;
  isCounting = true;
  const { query, connect } = pg.Client.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
  const counting = (ask: typeof query) =>
    function (this: unknown, ...args: unknown[]) {
      const answer = ask?.apply(this, args);
      return answer instanceof Promise ? counted(answer) : answer;
    };
  Object.assign(pg.Client.prototype, { query: counting(query), connect: counting(connect) });
  waitAlsoFor(() => questions > 0);
}

function counted<T>(answer: Promise<T>): Promise<T> {
  questions += 1;
  const end = () => {
    questions -= 1;
  };
  answer.then(end, end);
  return answer;
}
