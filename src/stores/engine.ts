import { privateFile } from '../base/data-dir.ts';
import { placeOf, type ServerAddress } from '../base/net.ts';
import type { Clock, CopyPlace, StoreEngine, StoreOperations } from '../ports/index.ts';
import { loadSqlite } from './sqlite/engine/sqlite-error.ts';
import { acquireDaemonLock, daemonLockName, isDaemonRunning, nodeFileName } from './sqlite/files/daemon-lock.ts';
import { sqliteOperations } from './sqlite/files/operations.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';

export { loadSqlite };

/** The location of rankd's database, and the clock for its records. */
export interface StorePlace {
  /** The data directory. It contains the daemon lock and, without a server, the database. */
  dataDir: string;
  clock: Clock;
  /**
   * The PostgreSQL server, or a function that finds it. If there is none, the database is an SQLite file in the data
   * directory.
   */
  server?: ServerAddress | (() => Promise<ServerAddress | undefined>) | undefined;
}

/** Returns the engine for a location: PostgreSQL if `server` names or finds a server, otherwise SQLite. */
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

/**
 * Returns an engine that chooses between SQLite and PostgreSQL on first use. It loads PostgreSQL's code only if
 * necessary.
 */
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
      migrate: async (advise) => (await operations()).migrate(advise),
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
    privateFile(dataDir, daemonLockName); // creates the directory, which holds this machine's files
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

/** Returns the daemon lock's operations. Only one daemon can use a data directory, wherever the database is. */
function daemonLock({ dataDir }: LocalPlace): Pick<StoreOperations, 'lockDaemon' | 'isDaemonRunning'> {
  return { lockDaemon: () => acquireDaemonLock(dataDir), isDaemonRunning: () => isDaemonRunning(dataDir) };
}

/**
 * Returns the source or target of a copy: a data directory, a file made by `rankd backup`, or a database on a server.
 */
export async function copyPlaceOf(
  where: { dataDir: string } | { file: string } | { server: ServerAddress },
  clock: Clock,
): Promise<CopyPlace> {
  if ('server' in where) return (await import('./postgres/contents.ts')).databasePlace(where.server, clock);
  const { backupPlace, directoryPlace } = await import('./sqlite/files/contents.ts');
  return 'file' in where ? backupPlace(where.file) : directoryPlace(where.dataDir, clock);
}
