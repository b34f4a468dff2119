import type { Clock, StoreEngine } from '../ports/index.ts';
import { sqliteOperations } from './sqlite/files/operations.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';

/** The engine that keeps rankd's data, with the directory where it lies. This is the only place that chooses an engine. */
export function engineOf(where: { dataDir: string; clock: Clock }): StoreEngine {
  return {
    openStore: (options) => openSqliteStore({ ...where, ...options }),
    operations: sqliteOperations(where),
  };
}
