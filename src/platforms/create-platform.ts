import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { crypto } from '../base/node-modules.ts';
import type { Config } from '../config/config.ts';
import { groupTitle } from '../core/group-title.ts';
import type { BudgetStore, Clock, GroupStore, Platform } from '../ports/index.ts';
import { sampleGroup } from './sample-group.ts';
import { SimulatedPlatform } from './simulated.ts';

export async function createPlatform({
  config,
  dataDir,
  clock,
  store,
  isServed = false,
}: {
  config: Config['platform'];
  dataDir: string;
  clock: Clock;
  store: Pick<GroupStore, 'findBaseRole' | 'storeBaseRole'> & BudgetStore;
  /** True in a daemon: it retries a malformed response, which a CLI command reports immediately. */
  isServed?: boolean;
}): Promise<Platform> {
  switch (config.kind) {
    case 'simulated': {
      const seed = await seedOf(config.groupFile);
      return SimulatedPlatform.open({ file: join(dataDir, databaseOf(config.groupFile)), seed });
    }
    case 'open-cloud': {
      const { OpenCloudPlatform } = await import('./open-cloud.ts');
      const { groupId, baseUrl, legacyBaseUrl, usersBaseUrl, developBaseUrl, proxy } = config;
      const title = groupTitle(config);
      const baseRoleMemory = {
        find: () => store.findBaseRole(title),
        store: (roleId: number) => store.storeBaseRole(title, roleId),
      };
      const apiKey = config.apiKey.reveal();
      const ledger = store.budgetLedger(crypto().hash('sha256', apiKey));
      const urls = { baseUrl, legacyBaseUrl, usersBaseUrl, developBaseUrl };
      return new OpenCloudPlatform({
        ...{ groupId, ...urls, apiKey, clock, baseRoleMemory, ledger },
        ...{ proxy, retriesMisshapen: isServed },
      });
    }
  }
}

async function seedOf(groupFile: string | undefined) {
  if (groupFile !== undefined) return (await import('./group-file.ts')).loadGroupFile(groupFile);
  return sampleGroup;
}

/**
 * Returns a different file name for each group file. If all shared a database, loading a configuration with another
 * group file would overwrite the group that the daemon is using, even if the daemon then rejects that configuration.
 */
function databaseOf(groupFile: string | undefined): string {
  if (groupFile === undefined) return 'simulated-group.db';
  return `simulated-group-${crypto().hash('sha256', realpathSync(groupFile)).slice(0, 8)}.db`;
}
