import { isRankdError, RankdError } from '../base/errors.ts';
import { thisSystem } from '../base/system.ts';
import type { Config } from '../config/config.ts';
import { type ConfigLocationSources, isSameFile, locateConfig, whyNotTrusted } from '../config/locate.ts';
import { askStatus } from '../control/ask.ts';
import { groupTitle } from '../core/group-title.ts';
import type { Ports } from '../ports/index.ts';
import { servesRealGroup } from '../usecases/group/served-group.ts';
import type { DaemonStatus } from '../usecases/upkeep/status-document.ts';

// Commands use the store directly, even while a daemon serves it. These functions detect conflicts with that daemon.

export interface DaemonAndConfig {
  /** The data directory's daemon; `undefined` if none responds. */
  daemon: DaemonStatus | undefined;
  /** The configuration that a new daemon would use; `none` if there is none, or if a daemon responded. */
  config: Config | 'none' | 'unreadable';
}

/** True if the daemon changes ranks in a simulated group or, if none responds, if a daemon started here would. */
export async function isSimulatedHere(
  ports: Pick<Ports, 'store'>,
  { daemon, config }: DaemonAndConfig,
): Promise<boolean> {
  if (daemon !== undefined) return daemon.platform === 'simulated';
  if (config === 'unreadable') return false;
  if (config !== 'none' && config.platform.kind === 'open-cloud') return false;
  const isChosen = config !== 'none' && config.platform.kind === 'simulated' && !config.platform.isDefault;
  return isChosen || !(await servesRealGroup(ports));
}

/**
 * Resolves with the daemon's status; `undefined` if none responds. Throws `store_unavailable` if the daemon has lost
 * its database, because it would not see the command's writes. Call this after opening the store, because an open store
 * itself detects later changes to its files.
 */
export async function refuseLostDatabase(
  dataDir: string,
  isOnServer: () => Promise<boolean>,
): Promise<DaemonStatus | undefined> {
  const daemon = await askStatus(dataDir);
  const problem = daemon?.storeProblem ?? null;
  if (problem === null) return daemon;
  const hint = (await isOnServer())
    ? "check the daemon's connection to its PostgreSQL server, then run the command again"
    : `stop the daemon, check the files in ${dataDir}, start it again, then run the command again`;
  const message = `The running daemon can't use its database, so nothing was changed. It reports: ${problem}`;
  throw new RankdError('store_unavailable', message, { hint });
}

/**
 * Returns an error if the daemon uses a different group than `config`, such as a simulated one, because the two groups
 * would share one history.
 */
export function otherGroup(
  daemon: Pick<DaemonStatus, 'changesRanksIn'> | undefined,
  { platform }: Config,
): RankdError | undefined {
  const ownGroup = groupTitle(platform);
  if (daemon === undefined || daemon.changesRanksIn === ownGroup) return undefined;
  return new RankdError(
    'conflict',
    `The running daemon changes ranks in ${daemon.changesRanksIn}, but this command uses ${ownGroup}.`,
    {
      hint: "make both use the same group: `rankd status` shows the daemon's, `rankd config path` this command's configuration file; then `rankd reload`, or restart `rankd serve`",
    },
  );
}

/**
 * If the running daemon serves the simulated group of `config`, marks that group as chosen, rather than as the default.
 */
export function asChosenByDaemon(daemon: Pick<DaemonStatus, 'changesRanksIn'> | undefined, config: Config): Config {
  const { platform } = config;
  if (platform.kind !== 'simulated' || daemon?.changesRanksIn !== groupTitle(platform)) return config;
  return { ...config, platform: { ...platform, isDefault: false } };
}

/**
 * Replaces a `conflict` with an error that contains the running daemon's process id and address. Returns other errors
 * unchanged, and also a `conflict` if no daemon responds.
 */
export async function namingDaemon(dataDir: string, error: unknown): Promise<unknown> {
  if (!isRankdError(error, 'conflict')) return error;
  const daemon = await askStatus(dataDir);
  if (daemon === undefined) return error;
  const { pid, url } = daemon;
  return new RankdError('conflict', `A rankd daemon is already running on ${dataDir}: process ${pid}, at ${url}.`, {
    hint: 'check it with `rankd status` and stop it, or name a different directory with --data-dir',
    cause: error,
  });
}

/**
 * Returns the configuration file that commands read here, if the daemon reads a different one and therefore ignores
 * edits to this one.
 */
export function otherConfigHere(
  { configSources }: { configSources: ConfigLocationSources },
  daemonFile: string | null,
): string | undefined {
  const here = locateConfig(configSources);
  if (here === undefined || whyNotTrusted(here, configSources) !== undefined) return undefined;
  return daemonFile === null || !isSameFile(here.path, daemonFile) ? here.path : undefined;
}

/** `daemonFile` is null if the daemon has no configuration file. */
export function otherFileText(daemonFile: string | null, file: string): string {
  const reading =
    daemonFile === null ? 'was started without a configuration file, so it does not read' : `reads ${daemonFile}, not`;
  return `the daemon ${reading} ${file}. If it should read that file, stop it and run: rankd serve --config ${thisSystem.quote(file)}`;
}
