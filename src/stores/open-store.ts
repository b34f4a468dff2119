import type { Store } from '../ports/index.ts';
import { openSqliteStore, type SqliteStoreOptions } from './sqlite/sqlite-store.ts';

export type StoreEngine = 'sqlite';

export interface StoreOptions extends SqliteStoreOptions {
  engine: StoreEngine;
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
