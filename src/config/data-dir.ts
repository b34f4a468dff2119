import { type System, thisSystem } from '../base/system.ts';

export interface DataDirSources {
  env: Record<string, string | undefined>;
  home: string;
  /** The current folder. It is asked for a relative directory only, because it may have been removed. */
  readonly cwd: string;
}

/** Where the database lies, as an absolute path: the flag `--data-dir`, RANKD_DATA_DIR, or else where the system keeps the data of its user or service. */
export function dataDirectory(flag: string | undefined, sources: DataDirSources, system: System = thisSystem): string {
  const { path } = system;
  const named = flag || sources.env['RANKD_DATA_DIR'] || system.dataDir(sources);
  return path.isAbsolute(named) ? path.resolve(named) : path.resolve(sources.cwd, named);
}
