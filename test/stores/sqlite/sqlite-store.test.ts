import { engineOf } from '../../../src/stores/engine.ts';
import type { TestDatabase } from '../../contracts/store/store-case.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { storeOperationsContract } from '../../contracts/store-operations-contract.ts';
import { TempDir } from '../../support/temp-dir.ts';

async function createDatabase(): Promise<TestDatabase> {
  const dir = new TempDir();
  return {
    engine: (clock) => engineOf({ dataDir: dir.path, clock }),
    [Symbol.asyncDispose]: async () => dir[Symbol.dispose](),
  };
}

storeContract('SqliteStore', createDatabase);
storeContract('SqliteStore of a daemon', createDatabase, { isServed: true });
storeOperationsContract('SQLite', createDatabase);
