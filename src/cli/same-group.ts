import type { Config } from '../config/config.ts';
import { askStatus } from '../control/ask.ts';
import { RankdError } from '../errors.ts';
import { isDaemonRunning } from '../stores/sqlite/daemon-lock.ts';

const patienceMs = 2_000;

type Group = { kind: Config['platform']['kind']; id: number | null };

/**
 * Throws `conflict` where the daemon of the data directory changes ranks in another group than `config` names: what is done here
 * would surprise whoever tries things out there, and each of the two would settle the other's changes by its own group.
 */
export async function refuseOtherGroup(dataDir: string, { platform }: Config): Promise<void> {
  const daemon = (await isDaemonRunning(dataDir)) ? await askStatus(dataDir, patienceMs) : undefined;
  if (daemon === undefined) return;
  const theirs = { kind: daemon.platform, id: daemon.groupId };
  const ours = { kind: platform.kind, id: platform.groupId ?? null };
  if (nameOf(theirs) === nameOf(ours)) return;
  throw new RankdError(
    'conflict',
    `The daemon that runs here changes ranks in ${nameOf(theirs)}, this command would in ${nameOf(ours)}; nothing was changed.`,
    {
      hint: "have both use one group: `rankd status` tells the daemon's, `rankd config path` the settings of this command; `rankd reload`, or start `rankd serve` anew",
    },
  );
}

function nameOf({ kind, id }: Group): string {
  return kind === 'simulated' ? 'the simulated group' : `group ${id} on Roblox`;
}
