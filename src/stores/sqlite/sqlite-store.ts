import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isOnReadOnlyFileSystem, privateFile, tightenFile } from '../../base/data-dir.ts';
import type { Clock, OpenOptions, Store } from '../../ports/index.ts';
import { KeyCache } from '../key-cache.ts';
import { othersWork, unmigrated } from '../schema-errors.ts';
import { auditStore } from './audit.ts';
import { lookUpKey } from './callers.ts';
import { changeQueries } from './change-queries.ts';
import { changeSearch } from './change-search.ts';
import { changeWrites } from './change-writes.ts';
import { declaredKeyStore } from './declared-keys.ts';
import { discordStore } from './discord.ts';
import { Connection } from './engine/connection.ts';
import { daemonLockName, lockOutDaemons } from './files/daemon-lock.ts';
import { newestSchema } from './files/examine.ts';
import { databaseName, hasDatabase, openExisting } from './files/existing.ts';
import { groupStore } from './groups.ts';
import { holdStore } from './holds.ts';
import { idempotencyStore } from './idempotency.ts';
import { keyStore } from './keys.ts';
import { memberQueueStore } from './member-queue.ts';
import { Nodes } from './nodes.ts';
import { personStore } from './people.ts';
import { retentionStore } from './retention.ts';
import { migrate } from './schema/migrate.ts';
import { schemaVersion } from './schema/schema-version.ts';
import { webhookStore } from './webhooks.ts';
import { whitelistStore } from './whitelist.ts';
import { workspaceStore } from './workspace.ts';

export interface SqliteStoreOptions extends OpenOptions {
  /** Where everything rankd remembers lives; made (0700) if it is missing. */
  dataDir: string;
  clock: Clock;
}

/** Opens `rankd.db` in the data directory. It is made if it is missing, and its schema brought up to date. Throws as `StoreEngine.openStore`. */
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
  const db = new Connection(privateFile(dataDir, databaseName));
  try {
    const keepDaemonsAway = (version: number) => {
      const lock = lockOutDaemons(dataDir);
      if (lock === undefined) throw othersWork(db.file, { version, newest: newestSchema });
      return lock;
    };
    const migration = migrate(db, clock, { keepDaemonsAway: isServed ? undefined : keepDaemonsAway });
    if (isNew) onNew?.();
    if (migration.copy !== null) onMigrated?.(migration);
    db.requireSchema(newestSchema);
    for (const suffix of ['', '-wal', '-shm']) tightenFile(db.file + suffix);
    db.useWriteAheadLog();
    if (isServed) db.syncOffThread();
    const nodes = new Nodes(db.file, db.files);
    if (isServed) {
      const lock = join(dataDir, daemonLockName);
      if (existsSync(lock)) db.files.add(lock);
      nodes.clearAway();
    }
    return createSqliteStore(db, clock, nodes);
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Every write to it fails with `store_unavailable`. */
function openReadOnlyStore(dataDir: string, clock: Clock): Store {
  const { db, close } = openExisting(dataDir);
  try {
    const version = schemaVersion(db, newestSchema);
    if (version < newestSchema) throw unmigrated(db.file, { version, newest: newestSchema });
    db.execute('PRAGMA query_only = ON'); // a write into a copy would be lost with it
    const store = createSqliteStore(db, clock);
    return { ...store, close: async () => close() };
  } catch (error) {
    close();
    throw error;
  }
}

/** The store on a connection whose schema is up to date. Closing the store closes the connection. */
export function createSqliteStore(db: Connection, clock: Clock, nodes = new Nodes(db.file, db.files)): Store {
  const queue = memberQueueStore(db, nodes);
  const idempotency = idempotencyStore(db);
  const keys = new KeyCache({
    lookUp: (query) => lookUpKey(db, { ...query, now: clock.now() }),
    changeToken: () => db.changeToken,
  });
  const ping = async () => {
    db.refuseHarmedFiles();
    db.refuseOtherSchema();
    db.get('SELECT 1 FROM workspace');
    void queue.settle();
  };
  /** Writes a row and removes it, to find out whether writes succeed again. */
  const tryToWrite = async () => {
    await queue.leave(await queue.enqueue(0));
    db.hasFailedToWrite = false;
  };
  let trial: Promise<void> | undefined;
  return {
    ...workspaceStore(db),
    ...keyStore(db, clock),
    freshen: () => keys.freshen(),
    lookUpKey: (query) => keys.lookUpKey(query),
    ...declaredKeyStore(db, clock),
    ...whitelistStore(db),
    ...changeWrites(db, clock, nodes),
    ...changeQueries(db, nodes),
    ...changeSearch(db),
    ...queue,
    ...idempotency,
    ...holdStore(db),
    ...groupStore(db),
    ...auditStore(db, clock),
    ...retentionStore(db),
    ...personStore(db),
    ...discordStore(db),
    ...webhookStore(db),
    nodes: undefined,
    limits: undefined,
    budgetLedger: () => undefined,
    clock,
    outgrown: () => db.outgrown(),
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
      nodes.close();
      db.close();
    },
  };
}
