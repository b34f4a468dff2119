import { afterEach, beforeEach, describe } from 'vitest';
import type { OpenOptions } from '../../src/ports/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { auditContract } from './store/audit.ts';
import { beginContract } from './store/begin.ts';
import { breakerContract } from './store/breaker.ts';
import { changeContract } from './store/changes.ts';
import { declaredKeyContract } from './store/declared-keys.ts';
import { discordContract } from './store/discord.ts';
import { groupContract } from './store/groups.ts';
import { holdContract } from './store/holds.ts';
import { idempotencyContract } from './store/idempotency.ts';
import { keyContract } from './store/keys.ts';
import { lateWriteContract } from './store/late-writes.ts';
import { loginLinksContract } from './store/login-links.ts';
import { lookUpContract } from './store/look-up.ts';
import { memberQueueContract } from './store/member-queue.ts';
import { personContract } from './store/people.ts';
import { retentionContract } from './store/retention.ts';
import { searchContract } from './store/search.ts';
import type { StoreCase, TestDatabase } from './store/store-case.ts';
import { webhookContract } from './store/webhooks.ts';
import { whitelistContract } from './store/whitelist.ts';
import { workspaceContract } from './store/workspace.ts';

/** Defines the tests that every engine's Store must pass. Each test runs on a separate database. */
export function storeContract(name: string, createDatabase: () => Promise<TestDatabase>, options?: OpenOptions): void {
  describe(name, () => {
    const at = {} as StoreCase;
    let database: TestDatabase;

    beforeEach(async () => {
      database = await createDatabase();
      at.clock = new ManualClock();
      at.store = await database.engine(at.clock).openStore(options);
      at.other = await database.engine(at.clock).openStore(options);
    });

    afterEach(async () => {
      await Promise.all([at.store.close(), at.other.close()]);
      await database[Symbol.asyncDispose]();
    });

    workspaceContract(at);
    loginLinksContract(at);
    keyContract(at);
    declaredKeyContract(at);
    lookUpContract(at);
    whitelistContract(at);
    changeContract(at);
    searchContract(at);
    beginContract(at);
    breakerContract(at);
    lateWriteContract(at);
    memberQueueContract(at);
    idempotencyContract(at);
    groupContract(at);
    holdContract(at);
    auditContract(at);
    retentionContract(at);
    personContract(at);
    discordContract(at);
    webhookContract(at);
  });
}
