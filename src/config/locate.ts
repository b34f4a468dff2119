import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { codeOf, RankdError } from '../base/errors.ts';
import type { NodeStart } from '../base/outbound-proxy.ts';
import { type System, type SystemUser, thisSystem } from '../base/system.ts';

export interface ConfigLocationSources {
  /** `--config`; null to read no file. */
  configFile?: string | null | undefined;
  env: Record<string, string | undefined>;
  cwd: string;
  /** The user of this process; absent on Windows, where a file's owner is not a number. */
  user?: SystemUser | undefined;
  /** If absent, Node.js is assumed to support outbound proxies. */
  node?: NodeStart;
}

export interface ConfigLocation {
  /** Absolute. */
  path: string;
  /** The file's name in messages. */
  name: string;
}

/** The file's maximum size. Commands parse the file synchronously, so it must be small; 8000 declared keys fit. */
export const maxConfigBytes = 1_000_000;

/**
 * Returns the configuration file to read, if there is one. Throws `config_invalid` if a named file or the target of a
 * link does not exist, and `no_permission` for a file in a default location that a different user could have written.
 */
export function trustedConfig(sources: ConfigLocationSources): ConfigLocation | undefined {
  const location = locateConfig(sources);
  if (location === undefined) return undefined;
  requireExisting(location);
  const distrust = distrustOfFound(location, sources);
  if (distrust === undefined) return location;
  const { path } = location;
  const elsewhere = dirname(path) === resolve(sources.cwd) ? '; otherwise, run rankd in your own folder' : '';
  throw new RankdError(
    'no_permission',
    `rankd found the configuration file ${path}, but did not read it: ${distrust}.`,
    {
      hint: `if you trust its contents, name it with --config ${thisSystem.quote(path)}${elsewhere}`,
    },
  );
}

/**
 * Returns the named configuration file, even if it does not exist, or the first existing one in the default locations.
 */
export function locateConfig(sources: ConfigLocationSources): ConfigLocation | undefined {
  if (sources.configFile === null) return undefined;
  return namedConfig(sources) ?? searchPath(sources).find(({ path }) => isPresent(path));
}

/** Returns the file that `--config` or RANKD_CONFIG names. */
function namedConfig({ configFile, env, cwd }: ConfigLocationSources): ConfigLocation | undefined {
  const name = configFile || env['RANKD_CONFIG'];
  return name ? { path: resolve(cwd, name), name } : undefined;
}

/** Returns the default locations of the configuration file, in order. */
export function searchPath(
  { env, cwd }: Pick<ConfigLocationSources, 'env' | 'cwd'>,
  system: System = thisSystem,
): ConfigLocation[] {
  const { join } = system.path;
  const own = join(system.configHome({ env, home: homeFolder(env, { system }) }), 'rankd', 'rankd.yaml');
  const others = [own, system.sharedConfig].filter((path) => path !== undefined);
  return [{ path: join(cwd, 'rankd.yaml'), name: 'rankd.yaml' }, ...others.map((path) => ({ path, name: path }))];
}

/**
 * True if the path exists, even as a dangling link, so that reading it fails instead of rankd silently using the
 * defaults.
 */
function isPresent(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // If this user cannot enter the folder, only the system's file counts as present.
    return path === thisSystem.sharedConfig && codeOf(error) === 'EACCES';
  }
}

/** Throws `config_invalid` if the file does not exist. If this user cannot check, the later read reports the reason. */
function requireExisting(location: ConfigLocation): void {
  try {
    statSync(location.path);
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(cause))) throw missingConfig(location, cause);
  }
}

export function missingConfig({ path, name }: ConfigLocation, cause: unknown): RankdError {
  if (isPresent(path)) {
    const message = `The configuration file ${name} is a link to a file that does not exist.`;
    return new RankdError('config_invalid', message, { hint: 'restore the file, or remove the link', cause });
  }
  return new RankdError('config_invalid', `The configuration file ${name} does not exist.`, {
    hint: 'check the path in --config or RANKD_CONFIG; rankd init creates a configuration file',
    cause,
  });
}

/**
 * Returns the reason to distrust a file; `undefined` for a trusted file, or one that `--config` or RANKD_CONFIG names.
 */
export function distrustOfFound({ path }: ConfigLocation, sources: ConfigLocationSources): string | undefined {
  return namedConfig(sources) === undefined ? distrustOf(path, sources) : undefined;
}

/**
 * Returns the reason why a different user could have written a file; `undefined` if only this user, root or the caller
 * of sudo could. The configuration's author decides where rankd sends the Roblox key.
 */
function distrustOf(path: string, { user, env }: Pick<ConfigLocationSources, 'user' | 'env'>): string | undefined {
  if (user === undefined) return undefined;
  const users = trustedIds(user.uid, env['SUDO_UID']);
  const groups = trustedIds(user.gid, env['SUDO_GID']); // with the umask 002, a user's own group can write
  const isForeign = ({ uid }: { uid: number }) => !users.has(uid);
  const isOpen = ({ mode, gid }: { mode: number; gid: number }) =>
    (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !groups.has(gid));

  const found = statsOf(path);
  if (found === undefined) return undefined;
  const { folder, entry, file } = found;
  if (isForeign(entry)) return `it belongs to another user (uid ${entry.uid})`;
  if (file !== undefined && isForeign(file))
    return `it is a link to a file that belongs to another user (uid ${file.uid})`;
  if (file !== undefined && isOpen(file)) return 'other users can write to it';
  if (isForeign(folder)) return `its folder belongs to another user (uid ${folder.uid})`;
  return isOpen(folder) && !isSticky(folder)
    ? 'other users can write to its folder, so they could replace the file'
    : undefined;
}

function trustedIds(own: number, ofSudo: string | undefined): Set<number> {
  return new Set([0, own, ...(ofSudo ? [Number(ofSudo)] : [])]);
}

/**
 * Returns the stats of the folder, the entry and its target; `undefined` if this user cannot check, which the later
 * read reports.
 */
function statsOf(path: string) {
  try {
    return { folder: statSync(dirname(path)), entry: lstatSync(path), file: statSync(path, { throwIfNoEntry: false }) };
  } catch {
    return undefined;
  }
}

/** True for a folder such as /tmp, where users can remove and rename only their own files. */
function isSticky({ mode }: { mode: number }): boolean {
  return (mode & 0o1000) !== 0;
}

/**
 * Throws `config_invalid` if the file that `--config` names does not exist, so that commands that do not read it also
 * report a typo.
 */
export function requireNamed({ configFile, cwd }: ConfigLocationSources): void {
  if (configFile) requireExisting({ path: resolve(cwd, configFile), name: configFile });
}

/** Returns existing files that rankd does not read, but whose names suggest that they are configurations. */
export function overlookedConfigs(sources: ConfigLocationSources): string[] {
  if (sources.configFile === null || namedConfig(sources) !== undefined) return [];
  const places = searchPath(sources).map(({ path }) => path);
  const found = places.findIndex(isPresent);
  return places
    .slice(0, found === -1 ? places.length : found)
    .flatMap((path) => ['rankd.yml', 'rankd.yaml.txt'].map((name) => join(dirname(path), name)))
    .filter(isPresent);
}

/** Returns the absolute path for a new configuration file. */
export function newConfigPath(sources: ConfigLocationSources): string {
  return namedConfig(sources)?.path ?? join(sources.cwd, 'rankd.yaml');
}

export function isSameFile(one: string, other: string): boolean {
  if (one === other) return true;
  return existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other);
}

/** Returns the user's home; `/` for a user id without an account, as in containers. An empty HOME counts as unset. */
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
