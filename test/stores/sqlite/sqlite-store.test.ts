import { engineOf } from '../../../src/stores/engine.ts';
import type { TestDatabase } from '../../contracts/store/store-case.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { storeOperationsContract } from '../../contracts/store-operations-contract.ts';
import { freshDataDir } from '../../support/fresh-data-dir.ts';
import { TempDir } from '../../support/temp-dir.ts';

async function createDatabase(dir = new TempDir()): Promise<TestDatabase> {
  return {
    engine: (clock) => engineOf({ dataDir: dir.path, clock }),
    [Symbol.asyncDispose]: async () => dir[Symbol.dispose](),
  };
}

/** With the schema; to make it takes longer than most of the tests. */
const createMigrated = async () => createDatabase(await freshDataDir());

storeContract('SqliteStore', createMigrated);
storeContract('SqliteStore of a daemon', createMigrated, { isServed: true });
storeOperationsContract('SQLite', createDatabase);
