import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { auditContract } from './store/audit.ts';
import { breakerContract } from './store/breaker.ts';
import { changeContract } from './store/changes.ts';
import { declaredKeyContract } from './store/declared-keys.ts';
import { keyContract } from './store/keys.ts';
import { lineContract } from './store/line.ts';
import { presentedContract } from './store/presented.ts';
import { retentionContract } from './store/retention.ts';
import type { OpenStore, StoreCase } from './store/store-case.ts';
import { whitelistContract } from './store/whitelist.ts';
import { workspaceContract } from './store/workspace.ts';

/** The promises of the Store port. Every engine passes them. */
export function storeContract(name: string, open: OpenStore): void {
  describe(name, () => {
    const at = {} as StoreCase;
    let dataDir: string;

    beforeEach(async () => {
      dataDir = mkdtempSync(join(tmpdir(), 'rankd-store-'));
      at.clock = new ManualClock();
      at.store = await open({ dataDir, clock: at.clock });
      at.other = await open({ dataDir, clock: at.clock });
    });

    afterEach(async () => {
      await Promise.all([at.store.close(), at.other.close()]);
      rmSync(dataDir, { recursive: true });
    });

    workspaceContract(at);
    keyContract(at);
    declaredKeyContract(at);
    presentedContract(at);
    whitelistContract(at);
    changeContract(at);
    breakerContract(at);
    lineContract(at);
    auditContract(at);
    retentionContract(at);
  });
}
