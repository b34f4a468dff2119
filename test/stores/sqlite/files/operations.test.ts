import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../../src/base/clock.ts';
import { engineOf } from '../../../../src/stores/engine.ts';
import { storeOperationsContract } from '../../../contracts/store-operations-contract.ts';

storeOperationsContract('SQLite', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'rankd-store-'));
  return {
    engine: engineOf({ dataDir, clock: systemClock }),
    [Symbol.asyncDispose]: async () => rmSync(dataDir, { recursive: true }),
  };
});
