import { privateFile } from '../base/data-dir.ts';
import { placeOf, type ServerAddress } from '../base/net.ts';
import type { Clock, CopyPlace, StoreEngine, StoreOperations } from '../ports/index.ts';
import { loadSqlite } from './sqlite/engine/sqlite-error.ts';
import { acquireDaemonLock, daemonLockName, isDaemonRunning, nodeFileName } from './sqlite/files/daemon-lock.ts';
import { sqliteOperations } from './sqlite/files/operations.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';

export { loadSqlite };

export interface StorePlace {
  /** Contains the daemon lock and, if there is no server, the SQLite database. */
  dataDir: string;
  clock: Clock;
  /**
   * The PostgreSQL server, or a function that looks it up. Without a server, the database is an SQLite file in the data
   * directory.
   */
  server?: ServerAddress | (() => Promise<ServerAddress | undefined>) | undefined;
}

export function engineOf({ server, ...where }: StorePlace): StoreEngine {
  if (server === undefined) return sqliteEngine(where);
  const find = typeof server === 'function' ? server : async () => server;
  return eitherEngine(where, find);
}

type LocalPlace = Omit<StorePlace, 'server'>;

function sqliteEngine(where: LocalPlace): StoreEngine {
  return {
    openStore: (options) => openSqliteStore({ ...where, ...options }),
    operations: sqliteOperations(where),
    place: async () => ({ text: where.dataDir, isServer: false }),
  };
}

/** Returns an engine that calls `find` on first use, and loads PostgreSQL's code only if there is a server. */
function eitherEngine(where: LocalPlace, find: () => Promise<ServerAddress | undefined>): StoreEngine {
  let chosen: Promise<Pick<StoreEngine, 'openStore' | 'place'> & { operations: Lazy<StoreOperations> }> | undefined;
  const choose = async () => {
    const address = await find();
    if (address !== undefined) return serverEngine(where, address);
    const sqlite = sqliteEngine(where);
    return { ...sqlite, operations: async () => sqlite.operations };
  };
  const engine = () => {
    chosen ??= choose();
    return chosen;
  };
  const operations = async () => (await engine()).operations();
  return {
    openStore: async (options) => (await engine()).openStore(options),
    place: async () => (await engine()).place(),
    operations: {
      exists: async () => (await operations()).exists(),
      check: async () => (await operations()).check(),
      serverFacts: async () => (await operations()).serverFacts(),
      server: async () => (await operations()).server(),
      migrate: async () => (await operations()).migrate(),
      tryMigration: async () => (await operations()).tryMigration(),
      backUp: async (target) => (await operations()).backUp(target),
      streamBackup: async (send) => (await operations()).streamBackup(send),
      examineBackup: async (file) => (await operations()).examineBackup(file),
      restore: async (request) => (await operations()).restore(request),
      findNames: async (query) => (await operations()).findNames(query),
      ...daemonLock(where),
    },
  };
}

type Lazy<T> = () => Promise<T>;

function serverEngine(where: LocalPlace, address: ServerAddress) {
  const { clock, dataDir } = where;
  const openStore: StoreEngine['openStore'] = async (options) => {
    const [{ openPostgresStore }, { clusterMemory }] = await Promise.all([
      import('./postgres/postgres-store.ts'),
      import('./postgres/known-cluster.ts'),
    ]);
    privateFile(dataDir, daemonLockName); // creates the data directory
    const nodeFile = options?.isServed ? privateFile(dataDir, nodeFileName) : undefined;
    return openPostgresStore({ address, clock, nodeFile, clusters: clusterMemory(dataDir, address), ...options });
  };
  const operations = async () => {
    const [{ postgresOperations }, { databasePlace }, { clusterMemory }, { portableBackups }] = await Promise.all([
      import('./postgres/operations.ts'),
      import('./postgres/contents.ts'),
      import('./postgres/known-cluster.ts'),
      import('./sqlite/files/contents.ts'),
    ]);
    const clusters = clusterMemory(dataDir, address);
    return {
      ...postgresOperations({ address, clock, clusters }),
      ...portableBackups(dataDir, clock, databasePlace(address, clock, clusters).read),
      ...daemonLock(where),
    };
  };
  return { openStore, place: async () => ({ text: placeOf(address), isServer: true }), operations };
}

/**
 * Returns the operations of the daemon lock: only one daemon can use a data directory, even if the database is on a
 * server.
 */
function daemonLock({ dataDir }: LocalPlace): Pick<StoreOperations, 'lockDaemon' | 'isDaemonRunning'> {
  return { lockDaemon: () => acquireDaemonLock(dataDir), isDaemonRunning: () => isDaemonRunning(dataDir) };
}

/** Returns the source or target of a copy. `file` is a backup made by `rankd backup`. */
export async function copyPlaceOf(
  where: { dataDir: string } | { file: string } | { server: ServerAddress },
  clock: Clock,
): Promise<CopyPlace> {
  if ('server' in where) return (await import('./postgres/contents.ts')).databasePlace(where.server, clock);
  const { backupPlace, directoryPlace } = await import('./sqlite/files/contents.ts');
  return 'file' in where ? backupPlace(where.file) : directoryPlace(where.dataDir, clock);
}
