import { engineOf } from '../../../src/stores/engine.ts';
import type { TestDatabase } from '../../contracts/store/store-case.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { storeOperationsContract } from '../../contracts/store-operations-contract.ts';
import { createPostgresDatabase } from '../../support/postgres-database.ts';
import { TempDir } from '../../support/temp-dir.ts';

async function createDatabase(make?: 'empty'): Promise<TestDatabase> {
  const database = await createPostgresDatabase(make);
  const { address } = database;
  const dir = new TempDir();
  return {
    engine: (clock) => engineOf({ dataDir: dir.path, clock, server: address }),
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

storeContract('PostgresStore', createDatabase);
storeOperationsContract('PostgreSQL', () => createDatabase('empty'), { isOnServer: true });
