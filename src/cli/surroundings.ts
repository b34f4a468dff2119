import type { Config } from '../config/config.ts';
import type { Ports } from '../ports/index.ts';
import type { DaemonStatus } from '../usecases/documents/status.ts';
import { servesRealGroup } from '../usecases/group/served-group.ts';

/** What a command that only needs the store finds beside it. */
export interface Surroundings {
  /** The daemon of the data directory; `undefined` if none answers. */
  daemon: DaemonStatus | undefined;
  /** The configuration that a daemon started here would have; it is not looked for beside a daemon. */
  config: Config | 'none' | 'unreadable';
}

/** Whether ranks are changed on a simulated group here. The daemon decides, or else the one that could be started here. */
export async function isSimulatedHere(ports: Pick<Ports, 'store'>, { daemon, config }: Surroundings): Promise<boolean> {
  if (daemon !== undefined) return daemon.platform === 'simulated';
  if (config === 'unreadable') return false;
  if (config !== 'none' && config.platform.kind === 'open-cloud') return false;
  const isChosen = config !== 'none' && config.platform.kind === 'simulated' && !config.platform.isDefault;
  return isChosen || !(await servesRealGroup(ports));
}
