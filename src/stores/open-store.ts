import type { Clock, Store } from '../ports.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';

export type StoreEngine = 'sqlite';

export interface StoreOptions {
  engine: StoreEngine;
  /** Where everything rankd remembers lives; made (0700) where it is missing. */
  dataDir: string;
  clock: Clock;
  /** True where others are served meanwhile: then the disk does not hold the thread while it is waited for. */
  isServed?: boolean;
}

/**
 * Opens the store, creating or migrating it first.
 * Throws `no_permission`, `config_invalid` (the file there is not rankd's), `schema_newer`, `store_unavailable`.
 */
export async function openStore({ engine, ...options }: StoreOptions): Promise<Store> {
  switch (engine) {
    case 'sqlite':
      return openSqliteStore(options);
    default:
      throw new Error(`no such store engine: ${engine satisfies never}`);
  }
}
