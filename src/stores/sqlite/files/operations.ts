import { statSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, RankdError } from '../../../base/errors.ts';
import type { Clock, Names, NamesQuery, StoreOperations, StoreReport } from '../../../ports/index.ts';
import { findNames, flawsCheck, noNames, rowsCheck } from '../../sql/operations.ts';
import { Connection, readerOf } from '../engine/connection.ts';
import { schemaFlaws } from '../schema/schema-version.ts';
import { backUp, streamBackup } from './backup.ts';
import { acquireDaemonLock, isDaemonRunning } from './daemon-lock.ts';
import { examine, newestSchema } from './examine.ts';
import { databaseName, hasDatabase, onExisting } from './existing.ts';
import { examineBackup, migrateDatabase, restoreBackup, tryMigration } from './restore.ts';

export function sqliteOperations({ dataDir, clock }: { dataDir: string; clock: Clock }): StoreOperations {
  return {
    exists: async () => hasDatabase(dataDir),
    check: async () => checkDatabase(dataDir),
    serverFacts: async () => undefined,
    server: async () => undefined,
    migrate: async () => migrateDatabase(dataDir, clock),
    tryMigration: async () => tryMigration(dataDir, clock),
    backUp: async (target) => backUp({ dataDir, ...target }),
    streamBackup: (send) => streamBackup(dataDir, send),
    examineBackup: async (file) => examineBackup(file),
    restore: async (request) => ({ kept: restoreBackup({ dataDir, ...request }, clock) }),
    findNames: (query) => namesIn(dataDir, query),
    lockDaemon: () => acquireDaemonLock(dataDir),
    isDaemonRunning: () => isDaemonRunning(dataDir),
  };
}

export function checkDatabase(dataDir: string): StoreReport {
  return onExisting(dataDir, (db) => {
    try {
      return reportOn(db);
    } catch (error) {
      if (!isDamage(error)) throw error;
      const detail = String((error.cause as Error).message);
      return { schema: undefined, newestSchema, checks: [{ name: 'integrity', ok: false, detail }], fix };
    }
  });
}

function reportOn(db: Connection): StoreReport {
  const { schema, rows, damage, danglingRows } = examine(db);
  const checks = [
    flawsCheck('integrity', damage, 'every page is readable and every index is complete'),
    flawsCheck('references', danglingRows, 'all referenced rows exist'),
    flawsCheck('schema', schemaFlaws(db, schema), `${schema}; this rankd supports schemas up to ${newestSchema}`),
    rowsCheck(rows),
    { name: 'size', ok: true, detail: `${bytesOf(db.file)} bytes, write-ahead log ${bytesOf(`${db.file}-wal`)} bytes` },
  ];
  return { schema, newestSchema, checks, fix };
}

const fix = 'stop the daemon, then restore a backup: rankd restore FILE';

function bytesOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function isDamage(error: unknown): error is RankdError {
  return error instanceof RankdError && codeOf(error.cause).startsWith('SQLITE_CORRUPT');
}

/** Finds names without creating, migrating or locking the database. */
async function namesIn(dataDir: string, query: NamesQuery): Promise<Names> {
  let db: Connection | undefined;
  try {
    db = new Connection(join(dataDir, databaseName), { isReadonly: true, lockTimeoutMs: 0 });
    return await findNames(readerOf(db), query);
  } catch {
    return noNames;
  } finally {
    db?.close();
  }
}
