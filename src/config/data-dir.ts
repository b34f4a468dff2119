import { isAbsolute, join, resolve } from 'node:path';

export interface DataDirSources {
  env: Record<string, string | undefined>;
  home: string;
  /** The current folder. It is asked for a relative directory only, because it may have been removed. */
  readonly cwd: string;
}

/** Where the database lies, as an absolute path: the flag `--data-dir`, RANKD_DATA_DIR, systemd's directory, or else the user's own. */
export function dataDirectory(flag: string | undefined, sources: DataDirSources): string {
  const { env, home } = sources;
  const named = flag || env['RANKD_DATA_DIR'] || stateDirectory(env) || join(dataHome(env, home), 'rankd');
  return isAbsolute(named) ? resolve(named) : resolve(sources.cwd, named);
}

/** systemd lists every StateDirectory= of the unit, separated by colons. */
function stateDirectory(env: DataDirSources['env']): string | undefined {
  return env['STATE_DIRECTORY']?.split(':')[0];
}

/** The XDG base directory specification says to ignore a relative path. */
function dataHome(env: DataDirSources['env'], home: string): string {
  const dataHome = env['XDG_DATA_HOME'];
  return dataHome !== undefined && isAbsolute(dataHome) ? dataHome : join(home, '.local', 'share');
}
