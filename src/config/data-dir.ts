import { isAbsolute, join, resolve } from 'node:path';

export interface DataDirSources {
  /** `--data-dir`. */
  flag?: string | undefined;
  env: Record<string, string | undefined>;
  home: string;
}

/** Where the database lives, as an absolute path: the flag, RANKD_DATA_DIR, systemd's directory, else the user's own. */
export function dataDirectory({ flag, env, home }: DataDirSources): string {
  return resolve(flag || env['RANKD_DATA_DIR'] || stateDirectory(env) || join(dataHome(env, home), 'rankd'));
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
