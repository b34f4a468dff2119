import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isOnReadOnlyFileSystem, privateFile, restrictFile } from '../../base/data-dir.ts';
import type { Clock, KeyRecord, OpenOptions, Store } from '../../ports/index.ts';
import { KeyCache } from '../key-cache.ts';
import { unmigrated, usedByOthers } from '../schema-errors.ts';
import { type RecordRow, recordColumns, toRecord } from '../sql/callers.ts';
import { commonStore } from '../sql/store.ts';
import { Connection } from './engine/connection.ts';
import { SqliteDatabase } from './engine/database.ts';
import { sqliteDialect } from './engine/statements.ts';
import { daemonWriter, localWriter } from './engine/writer.ts';
import { daemonLockName, lockOutDaemons, removeFreeLocks } from './files/daemon-lock.ts';
import { newestSchema } from './files/examine.ts';
import { databaseName, hasDatabase, openExisting } from './files/existing.ts';
import { idempotencyStore, memberQueueStore, Node } from './nodes.ts';
import { migrate } from './schema/migrate.ts';
import { schemaVersion } from './schema/schema-version.ts';

export interface SqliteStoreOptions extends OpenOptions {
  /** Created with mode 0700 if it is missing. */
  dataDir: string;
  clock: Clock;
}

/**
 * Opens `rankd.db` in the data directory, creating or migrating it if necessary. Throws the same errors as
 * `StoreEngine.openStore`.
 */
export async function openSqliteStore({
  dataDir,
  clock,
  isServed = false,
  isReading = false,
  onNew,
  onMigrated,
}: SqliteStoreOptions): Promise<Store> {
  if (isReading && hasDatabase(dataDir) && isOnReadOnlyFileSystem(dataDir)) return openReadOnlyStore(dataDir, clock);
  const isNew = !existsSync(join(dataDir, databaseName));
  const file = privateFile(dataDir, databaseName);
  const lockForMigration = (version: number) => {
    const lock = lockOutDaemons(dataDir);
    if (lock === undefined) throw usedByOthers(file, { version, newest: newestSchema });
    return lock;
  };
  const connection = new Connection(file);
  try {
    const migration = migrate(connection, clock, { lockOutDaemons: isServed ? undefined : lockForMigration });
    if (isNew) onNew?.();
    if (migration.copy !== null) onMigrated?.(migration);
    for (const suffix of ['', '-wal', '-shm']) restrictFile(file + suffix);
    connection.useWriteAheadLog();
    const db = new SqliteDatabase(connection, { newestSchema, openWriter: isServed ? daemonWriter : localWriter });
    if (isServed) {
      const lock = join(dataDir, daemonLockName);
      if (existsSync(lock)) db.files.add(lock);
      removeFreeLocks(dataDir);
    }
    return createSqliteStore(db, clock);
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Opens a store whose writes all fail with `store_unavailable`. */
function openReadOnlyStore(dataDir: string, clock: Clock): Store {
  const { db, close } = openExisting(dataDir);
  try {
    const version = schemaVersion(db, newestSchema);
    if (version < newestSchema) throw unmigrated(db.file, { version, newest: newestSchema });
    // A write would only change the temporary copy that `openExisting` has opened.
    const store = createSqliteStore(new SqliteDatabase(db, { isReadOnly: true }), clock);
    return { ...store, close: async () => store.close().finally(close) };
  } catch (error) {
    close();
    throw error;
  }
}

/** Returns a store on a database with the newest schema. Closing the store closes the database. */
export function createSqliteStore(db: SqliteDatabase, clock: Clock): Store {
  const node = new Node(db);
  const queue = memberQueueStore(db, node);
  const idempotency = idempotencyStore(db);
  const keys = new KeyCache({
    lookUp: (query) => lookUpKey(db, { ...query, now: clock.now() }),
    changeToken: () => db.changeToken,
  });
  const ping = async () => {
    db.files.check();
    db.requireKnownSchema();
    await db.get('SELECT 1 FROM workspace');
    void queue.settle();
  };
  /** Writes and removes a row, to check whether writes succeed again. */
  const tryToWrite = async () => {
    await queue.leave(await queue.enqueue(0));
    db.hasFailedToWrite = false;
  };
  let trial: Promise<void> | undefined;
  return {
    ...commonStore(db, { clock, node, declarations: undefined }),
    freshen: () => keys.freshen(),
    lookUpKey: (query) => keys.lookUpKey(query),
    ...queue,
    ...idempotency,
    nodes: undefined,
    limits: undefined,
    budgetLedger: () => undefined,
    schemaTooNew: () => db.schemaTooNew(),
    ping,
    async pingWrites() {
      await ping();
      if (!db.hasFailedToWrite) return;
      trial ??= tryToWrite().finally(() => {
        trial = undefined;
      });
      await trial;
    },
    async close() {
      idempotency[Symbol.dispose]();
      node.close();
      await db.close();
    },
  };
}

/**
 * Finds the key with the given secret, whatever its state, with the workspace and the key's whitelist entry for the
 * place.
 */
function lookUpKey(db: SqliteDatabase, query: { hash: string; placeId: number; now: number }): KeyRecord | undefined {
  const row = db.getNow<RecordRow>(bySecretSql, query);
  return row && toRecord(row, query.placeId, db.sql);
}

const bySecretSql = `
  SELECT ${recordColumns(sqliteDialect)}
  FROM key_secrets AS secret
  JOIN keys AS k ON k.id = secret.key_id
  CROSS JOIN workspace AS w
  LEFT JOIN whitelist AS e ON e.key_id = k.id AND e.place_id = @placeId
  WHERE secret.hash = unhex(@hash)`;
