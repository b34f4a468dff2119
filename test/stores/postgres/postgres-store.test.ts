import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import type { TestDatabase } from '../../contracts/store/store-case.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { createPostgresDatabase } from '../../support/postgres-database.ts';

async function createDatabase(): Promise<TestDatabase> {
  const { address, ...rest } = await createPostgresDatabase();
  return {
    engine: (clock) => ({
      openStore: (options) => openPostgresStore({ address, clock, ...options }),
      operations: undefined as never,
    }),
    [Symbol.asyncDispose]: rest[Symbol.asyncDispose],
  };
}

storeContract('PostgresStore', createDatabase);
