import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { engineOf } from '../../../src/stores/engine.ts';
import type { TestDatabase } from '../../contracts/store/store-case.ts';
import { storeContract } from '../../contracts/store-contract.ts';
import { storeOperationsContract } from '../../contracts/store-operations-contract.ts';

async function createDatabase(): Promise<TestDatabase> {
  const dataDir = mkdtempSync(join(tmpdir(), 'rankd-store-'));
  return {
    engine: (clock) => engineOf({ dataDir, clock }),
    [Symbol.asyncDispose]: async () => rmSync(dataDir, { recursive: true }),
  };
}

storeContract('SqliteStore', createDatabase);
storeContract('SqliteStore of a daemon', createDatabase, { isServed: true });
storeOperationsContract('SQLite', createDatabase);
