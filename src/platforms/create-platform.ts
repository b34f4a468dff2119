import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Clock, Platform } from '../ports.ts';
import { sampleGroup } from './sample-group.ts';
import { SimulatedPlatform } from './simulated.ts';

/** The platform the configuration names. */
export async function createPlatform({
  config,
  dataDir,
  clock,
}: {
  config: Config['platform'];
  dataDir: string;
  clock: Clock;
}): Promise<Platform> {
  switch (config.kind) {
    case 'simulated':
      return SimulatedPlatform.open({
        file: join(dataDir, 'simulated-group.db'),
        seed: await seedOf(config.groupFile),
      });
    case 'open-cloud': {
      const { OpenCloudPlatform } = await import('./open-cloud.ts');
      const { groupId, baseUrl, legacyBaseUrl } = config;
      return new OpenCloudPlatform({ groupId, baseUrl, legacyBaseUrl, apiKey: config.apiKey.reveal(), clock });
    }
  }
}

async function seedOf(groupFile: string | undefined) {
  if (groupFile !== undefined) return (await import('./group-file.ts')).loadGroupFile(groupFile);
  return sampleGroup;
}
