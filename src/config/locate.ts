import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type System, thisSystem } from '../base/system.ts';

export interface ConfigLocationSources {
  /** `--config`; null if no file is to be read. */
  configFile?: string | null | undefined;
  env: Record<string, string | undefined>;
  cwd: string;
  /** Who reads it; absent on Windows, whose files do not tell their owner in this way. */
  user?: { uid: number; gid: number } | undefined;
}

export interface ConfigLocation {
  /** Absolute. */
  path: string;
  /** The name that messages use. */
  name: string;
}

/** The configuration file to read; `undefined` if none is named and none exists. A named one need not exist. */
export function locateConfig(sources: ConfigLocationSources): ConfigLocation | undefined {
  if (sources.configFile === null) return undefined;
  return namedConfig(sources) ?? searchPath(sources).find(({ path }) => isThere(path));
}

/** Files whose names say that they were meant to be found, beside the places that were searched without success. */
export function overlookedConfigs(sources: ConfigLocationSources): string[] {
  if (sources.configFile === null || namedConfig(sources) !== undefined) return [];
  const places = searchPath(sources).map(({ path }) => path);
  const found = places.findIndex(isThere);
  return places
    .slice(0, found === -1 ? places.length : found)
    .flatMap((path) => ['rankd.yml', 'rankd.yaml.txt'].map((name) => join(dirname(path), name)))
    .filter(isThere);
}

/** Where a new configuration file must be so that it is the one that is read. An absolute path. */
export function newConfigPath(sources: ConfigLocationSources): string {
  return namedConfig(sources)?.path ?? join(sources.cwd, 'rankd.yaml');
}

/** Whether two paths lead to one file. */
export function isSameFile(one: string, other: string): boolean {
  if (one === other) return true;
  return existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other);
}

/** The file that `--config` or RANKD_CONFIG names. */
export function namedConfig({ configFile, env, cwd }: ConfigLocationSources): ConfigLocation | undefined {
  const name = configFile || env['RANKD_CONFIG'];
  return name ? { path: resolve(cwd, name), name } : undefined;
}

/** Where rankd looks for a configuration file if none is named, in order. */
export function searchPath(
  { env, cwd }: Pick<ConfigLocationSources, 'env' | 'cwd'>,
  system: System = thisSystem,
): ConfigLocation[] {
  const { join } = system.path;
  const own = join(system.configHome({ env, home: homeFolder(env, { system }) }), 'rankd', 'rankd.yaml');
  const others = [own, system.sharedConfig].filter((path) => path !== undefined);
  return [{ path: join(cwd, 'rankd.yaml'), name: 'rankd.yaml' }, ...others.map((path) => ({ path, name: path }))];
}

/** A link counts even if it leads nowhere: reading it then fails, and rankd does not run on defaults without a word. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // The folder is closed to this user. Another user's home or current folder doesn't matter; the system's file does.
    return path === thisSystem.sharedConfig && error instanceof Error && 'code' in error && error.code === 'EACCES';
  }
}

/** The user's folder; `/` for a user id without a name, as in containers. An empty HOME counts as none, because it would mean the current folder. */
export function homeFolder(
  env: Record<string, string | undefined>,
  { account = () => userInfo(), system = thisSystem } = {},
): string {
  const named = env[system.homeVariable];
  if (named) return named;
  try {
    return account().homedir;
  } catch {
    return '/';
  }
}
