import type { Clock, StoreOperations } from '../../../ports/index.ts';
import { backUp, streamBackup } from './backup.ts';
import { checkDatabase } from './check-database.ts';
import { acquireDaemonLock, isDaemonRunning } from './daemon-lock.ts';
import { hasDatabase } from './existing.ts';
import { findNames } from './find-names.ts';
import { migrateDatabase, tryMigration } from './migrate-database.ts';
import { examineBackup, restoreBackup } from './restore.ts';

/** The operations on the database of a data directory. */
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
    findNames: async (query) => findNames(dataDir, query),
    lockDaemon: () => acquireDaemonLock(dataDir),
    isDaemonRunning: () => isDaemonRunning(dataDir),
  };
}
