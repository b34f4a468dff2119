import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { storeContract } from '../../contracts/store-contract.ts';

for (const [name, isServed] of Object.entries({ SqliteStore: false, 'SqliteStore of a daemon': true })) {
  storeContract(name, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'rankd-store-'));
    return {
      open: (clock) => openSqliteStore({ dataDir, clock, isServed }),
      [Symbol.asyncDispose]: async () => rmSync(dataDir, { recursive: true }),
    };
  });
}
