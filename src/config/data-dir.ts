import { existsSync } from 'node:fs';
import { type System, thisSystem } from '../base/system.ts';

interface DataDirSources {
  env: Record<string, string | undefined>;
  home: string;
  /** The current folder. It is read for a relative directory only, because it may have been removed. */
  readonly cwd: string;
  /** The data directory of a service of this machine, if a service can have one here. */
  serviceDataDir: string | undefined;
}

/**
 * The absolute path of the folder with the database: the flag `--data-dir`, else RANKD_DATA_DIR, else the system's
 * usual place for data of the user or service. For a user without a database, it is the directory of the machine's
 * service, if the user can see it.
 */
export function dataDirectory(flag: string | undefined, sources: DataDirSources, system: System = thisSystem): string {
  const { path } = system;
  const chosen = flag || sources.env['RANKD_DATA_DIR'] || system.dataDir(sources);
  const directory = path.isAbsolute(chosen) ? path.resolve(chosen) : path.resolve(sources.cwd, chosen);
  const service = unnamedServiceDirectory(flag, sources);
  const hasDatabase = (folder: string) => existsSync(path.join(folder, 'rankd.db'));
  return service !== undefined && !hasDatabase(directory) && hasDatabase(service) ? service : directory;
}

/** The directory of the machine's service, if it exists and neither a flag nor a variable names a directory. */
export function unnamedServiceDirectory(
  flag: string | undefined,
  { env, serviceDataDir }: Pick<DataDirSources, 'env' | 'serviceDataDir'>,
): string | undefined {
  return !isDataDirNamed(flag, { env }) && serviceDataDir !== undefined && existsSync(serviceDataDir)
    ? serviceDataDir
    : undefined;
}

/** True if a flag, a variable or the service manager names the data directory. */
export function isDataDirNamed(flag: string | undefined, { env }: Pick<DataDirSources, 'env'>): boolean {
  return Boolean(flag || env['RANKD_DATA_DIR'] || env['STATE_DIRECTORY']);
}
