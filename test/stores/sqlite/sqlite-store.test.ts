import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../../src/ports/index.ts';
import { engineOf } from '../../../src/stores/engine.ts';
import { Connection } from '../../../src/stores/sqlite/engine/connection.ts';
import { SqliteDatabase } from '../../../src/stores/sqlite/engine/database.ts';
import { threadWriter } from '../../../src/stores/sqlite/engine/writer.ts';
import { databaseName } from '../../../src/stores/sqlite/files/existing.ts';
import { migrations } from '../../../src/stores/sqlite/schema/migrations.ts';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { operate } from '../../contracts/store/samples.ts';
import type { TestDatabase } from '../../contracts/store/store-case.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { storeOperationsContract } from '../../contracts/store-operations-contract.ts';
import { freshDataDir } from '../../support/fresh-data-dir.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { TempDir, tempDir } from '../../support/temp-dir.ts';

async function createDatabase(dir = new TempDir()): Promise<TestDatabase> {
  return {
    engine: (clock) => engineOf({ dataDir: dir.path, clock }),
    [Symbol.asyncDispose]: async () => dir[Symbol.dispose](),
  };
}

/** Copies a migrated database, because a migration takes longer than most tests. */
const createMigrated = async () => createDatabase(await freshDataDir());

async function createWithThread(): Promise<TestDatabase> {
  const dir = await freshDataDir();
  const openStore = (clock: Clock) => async () => {
    const connection = new Connection(join(dir.path, databaseName));
    return createSqliteStore(new SqliteDatabase(connection, { openWriter: threadWriter }), clock);
  };
  return {
    engine: (clock) => ({ ...engineOf({ dataDir: dir.path, clock }), openStore: openStore(clock) }),
    [Symbol.asyncDispose]: async () => dir[Symbol.dispose](),
  };
}

storeContract('SqliteStore', createMigrated);
storeContract('SqliteStore of a daemon on a slow disk', createWithThread, { isServed: true });
storeOperationsContract('SQLite', createDatabase);

test('a handle does not write to a database that a newer rankd has migrated', async () => {
  const dataDir = tempDir();
  const store = await openSqliteStore({ dataDir, clock: new ManualClock(), isServed: true });
  onTestFinished(() => store.close());
  expect(store.schemaTooNew()).toBeUndefined();
  const later = new Database(join(dataDir, 'rankd.db'));
  later.pragma(`user_version = ${migrations.length + 1}`);
  const suspended = operate({ store }).updateWorkspace({ active: false }, 'cli:ann@host');
  await expect(suspended).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('A newer rankd has changed'),
  });
  await expect(store.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(store.schemaTooNew()).toMatchObject({ code: 'schema_newer' });
  expect(later.prepare('SELECT active FROM workspace').pluck().get()).toBe(1);
  later.close();
});
