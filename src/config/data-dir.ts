import { existsSync } from 'node:fs';
import { type System, thisSystem } from '../base/system.ts';

interface DataDirSources {
  env: Record<string, string | undefined>;
  home: string;
  /**
   * Read only if the data directory is a relative path, because reading it throws if the current folder was removed.
   */
  readonly cwd: string;
  /** The data directory of a machine-wide service, if this system has one. */
  serviceDataDir: string | undefined;
}

/**
 * Returns the absolute path of the data directory: from `--data-dir`, else RANKD_DATA_DIR, else the system's default
 * for the user or service. If no directory is named and the user has no database, returns the machine-wide service's
 * directory, provided that the user can see a database there.
 */
export function dataDirectory(flag: string | undefined, sources: DataDirSources, system: System = thisSystem): string {
  const { path } = system;
  const chosen = flag || sources.env['RANKD_DATA_DIR'] || system.dataDir(sources);
  const directory = path.isAbsolute(chosen) ? path.resolve(chosen) : path.resolve(sources.cwd, chosen);
  const service = unnamedServiceDirectory(flag, sources);
  const hasDatabase = (folder: string) => existsSync(path.join(folder, 'rankd.db'));
  return service !== undefined && !hasDatabase(directory) && hasDatabase(service) ? service : directory;
}

export function unnamedServiceDirectory(
  flag: string | undefined,
  { env, serviceDataDir }: Pick<DataDirSources, 'env' | 'serviceDataDir'>,
): string | undefined {
  return !isDataDirNamed(flag, { env }) && serviceDataDir !== undefined && existsSync(serviceDataDir)
    ? serviceDataDir
    : undefined;
}

/** Includes STATE_DIRECTORY, which systemd sets for a service. */
export function isDataDirNamed(flag: string | undefined, { env }: Pick<DataDirSources, 'env'>): boolean {
  return Boolean(flag || env['RANKD_DATA_DIR'] || env['STATE_DIRECTORY']);
}
