import { RankdError } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { groupTitle } from '../config/group-title.ts';
import { askStatus } from '../control/ask.ts';
import type { StoreOperations } from '../ports/index.ts';

const timeoutMs = 2_000;

/**
 * Throws `conflict` where the daemon of the data directory tells that it changes ranks in another group than `config` names, such
 * as a simulated one: somebody tries things out there, and the history of both is one.
 */
export async function refuseOtherGroup(
  { dataDir, operations }: { dataDir: string; operations: Pick<StoreOperations, 'isDaemonRunning'> },
  { platform }: Config,
): Promise<void> {
  const daemon = (await operations.isDaemonRunning()) ? await askStatus(dataDir, timeoutMs) : undefined;
  const ours = groupTitle(platform);
  if (daemon === undefined || daemon.changesRanksIn === ours) return;
  throw new RankdError(
    'conflict',
    `The daemon that runs here changes ranks in ${daemon.changesRanksIn}, this command would in ${ours}; nothing was changed.`,
    {
      hint: "have both use one group: `rankd status` tells the daemon's, `rankd config path` the settings of this command; `rankd reload`, or start `rankd serve` anew",
    },
  );
}
