import { dirname } from 'node:path';
import { RankdError } from '../../base/errors.ts';
import { thisSystem } from '../../base/system.ts';
import type { Config } from '../../config/config.ts';
import { withoutKeys } from '../../core/api-key.ts';
import { groupTitle } from '../../core/group-title.ts';
import type { Store } from '../../ports/index.ts';

/**
 * Throws `config_invalid` if the configuration names no group but the store serves a real one: the operator must not
 * change a simulated group by mistake.
 */
export async function refuseDefaultSimulation(
  store: Pick<Store, 'findServedGroup' | 'nodes'>,
  { platform }: Pick<Config, 'platform'>,
): Promise<void> {
  const served = platform.kind === 'simulated' && platform.isDefault ? await store.findServedGroup() : undefined;
  if (served === undefined) return;
  const { group, configFile } = served;
  const isShared = store.nodes !== undefined; // the file may be on another machine
  const [source, fix] =
    configFile === undefined
      ? ['its settings came from the environment', 'set the same variables again, or name a file with --config']
      : [
          `its configuration is ${configFile}${isShared ? ' on the machine of a daemon' : ''}`,
          isShared
            ? 'copy that file to this machine, and name it with --config'
            : `add --config ${thisSystem.quote(configFile)}, or run the command in ${dirname(configFile)}`,
        ];
  throw new RankdError(
    'config_invalid',
    `This ${isShared ? 'database' : 'data directory'} serves ${group} (${source}), but no configuration here names a group. rankd does not switch to a simulated group by itself.`,
    { hint: `${fix}; to simulate one anyway: rankd serve --simulate` },
  );
}

/** True if the store serves a real group, or used to. */
export async function servesRealGroup({ store }: { store: Pick<Store, 'findServedGroup'> }): Promise<boolean> {
  return (await store.findServedGroup()) !== undefined;
}

export async function storeServedGroup(
  { store }: { store: Pick<Store, 'findServedGroup' | 'storeServedGroup'> },
  { config: { platform }, file }: { config: Pick<Config, 'platform'>; file: string | undefined },
): Promise<void> {
  if (platform.kind === 'simulated') return;
  const group = groupTitle(platform);
  const configFile = file && withoutKeys(file);
  const served = await store.findServedGroup();
  if (served?.group === group && served.configFile === configFile) return;
  await store.storeServedGroup({ group, ...(configFile !== undefined && { configFile }) });
}
