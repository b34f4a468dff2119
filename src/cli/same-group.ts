import { RankdError } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { groupTitle } from '../core/group-title.ts';
import type { DaemonStatus } from '../usecases/documents/status.ts';

/**
 * What is wrong if the daemon of the data directory changes ranks in another group than the one in `config`, e.g. a simulated one:
 * somebody is trying things out there, and both share one history. `undefined` if no daemon answers, or both mean the same group.
 */
export function otherGroup(
  daemon: Pick<DaemonStatus, 'changesRanksIn'> | undefined,
  { platform }: Config,
): RankdError | undefined {
  const ours = groupTitle(platform);
  if (daemon === undefined || daemon.changesRanksIn === ours) return undefined;
  return new RankdError(
    'conflict',
    `The daemon that runs here changes ranks in ${daemon.changesRanksIn}, and this command works on ${ours}.`,
    {
      hint: "let both use one group: `rankd status` shows the daemon's, `rankd config path` the settings of this command; then `rankd reload`, or restart `rankd serve`",
    },
  );
}

/** The configuration for a command beside a simulated daemon that is the same by default: the operator started that one on purpose. */
export function chosenWith(daemon: Pick<DaemonStatus, 'changesRanksIn'> | undefined, config: Config): Config {
  const { platform } = config;
  if (platform.kind !== 'simulated' || daemon?.changesRanksIn !== groupTitle(platform)) return config;
  return { ...config, platform: { ...platform, isDefault: false } };
}
