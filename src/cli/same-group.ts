import { RankdError } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { groupTitle } from '../config/group-title.ts';
import { askStatus } from '../control/ask.ts';

const timeoutMs = 2_000;

/**
 * Throws `conflict` if the daemon of the data directory changes ranks in another group than the one in `config`, e.g. a
 * simulated one: somebody is trying things out there, and both share one history.
 */
export async function refuseOtherGroup({ dataDir }: { dataDir: string }, { platform }: Config): Promise<void> {
  const daemon = await askStatus(dataDir, timeoutMs);
  const ours = groupTitle(platform);
  if (daemon === undefined || daemon.changesRanksIn === ours) return;
  throw new RankdError(
    'conflict',
    `The daemon that runs here changes ranks in ${daemon.changesRanksIn}, this command would in ${ours}; nothing was changed.`,
    {
      hint: "let both use one group: `rankd status` shows the daemon's, `rankd config path` the settings of this command; then `rankd reload`, or restart `rankd serve`",
    },
  );
}
