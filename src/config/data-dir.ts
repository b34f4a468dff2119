import { existsSync } from 'node:fs';
import { type System, thisSystem } from '../base/system.ts';

export interface DataDirSources {
  env: Record<string, string | undefined>;
  home: string;
  /** The current folder. It is asked for a relative directory only, because it may have been removed. */
  readonly cwd: string;
  /** Where a service of this machine has its data, if it can have one. */
  serviceDataDir: string | undefined;
}

/**
 * Where the database lies, as an absolute path: the flag `--data-dir`, RANKD_DATA_DIR, or else where the system keeps the data of its user
 * or service. A user without a database works on that of the machine's service, if that one is to be seen.
 */
export function dataDirectory(flag: string | undefined, sources: DataDirSources, system: System = thisSystem): string {
  const { path } = system;
  const chosen = flag || sources.env['RANKD_DATA_DIR'] || system.dataDir(sources);
  const directory = path.isAbsolute(chosen) ? path.resolve(chosen) : path.resolve(sources.cwd, chosen);
  const service = unnamedServiceDirectory(flag, sources);
  const hasDatabase = (folder: string) => existsSync(path.join(folder, 'rankd.db'));
  return service !== undefined && !hasDatabase(directory) && hasDatabase(service) ? service : directory;
}

/** The directory of the machine's service, if it is there and nothing names a directory; else `undefined`. */
export function unnamedServiceDirectory(
  flag: string | undefined,
  { env, serviceDataDir }: Pick<DataDirSources, 'env' | 'serviceDataDir'>,
): string | undefined {
  const isNamed = flag || env['RANKD_DATA_DIR'] || env['STATE_DIRECTORY'];
  return !isNamed && serviceDataDir !== undefined && existsSync(serviceDataDir) ? serviceDataDir : undefined;
}
