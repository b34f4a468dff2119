import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { codeOf, RankdError } from '../base/errors.ts';
import type { NodeStart } from '../base/outbound-proxy.ts';
import { type System, type SystemUser, thisSystem } from '../base/system.ts';

export interface ConfigLocationSources {
  /** The path from `--config`; null to read no file. */
  configFile?: string | null | undefined;
  env: Record<string, string | undefined>;
  cwd: string;
  /** Absent on Windows, where files have no numeric owner. */
  user?: SystemUser | undefined;
  /** If absent, rankd assumes that Node.js supports outbound proxies. */
  node?: NodeStart;
}

export interface ConfigLocation {
  /** Absolute. */
  path: string;
  /** The path to show in messages. */
  name: string;
}

/** Commands parse the file synchronously, so it must be small. A file with 8000 declared keys still fits. */
export const maxConfigBytes = 1_000_000;

/**
 * Finds the configuration file to read. Throws `config_invalid` if the named file or a link's target does not exist,
 * and `no_permission` if the file is in a default location and another user could have written it.
 */
export function trustedConfig(sources: ConfigLocationSources): ConfigLocation | undefined {
  const location = locateConfig(sources);
  if (location === undefined) return undefined;
  requireExisting(location);
  const distrust = whyNotTrusted(location, sources);
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
 * Returns the configuration file that the user named, even if it does not exist, or else the first one found in the
 * default locations.
 */
export function locateConfig(sources: ConfigLocationSources): ConfigLocation | undefined {
  if (sources.configFile === null) return undefined;
  return namedConfig(sources) ?? searchPath(sources).find(({ path }) => isPresent(path));
}

function namedConfig({ configFile, env, cwd }: ConfigLocationSources): ConfigLocation | undefined {
  const name = configFile || env['RANKD_CONFIG'];
  return name ? { path: resolve(cwd, name), name } : undefined;
}

export function searchPath(
  { env, cwd }: Pick<ConfigLocationSources, 'env' | 'cwd'>,
  system: System = thisSystem,
): ConfigLocation[] {
  const { join } = system.path;
  const own = join(system.configHome({ env, home: homeFolder(env, { system }) }), 'rankd', 'rankd.yaml');
  const others = [own, system.sharedConfig].filter((path) => path !== undefined);
  return [{ path: join(cwd, 'rankd.yaml'), name: 'rankd.yaml' }, ...others.map((path) => ({ path, name: path }))];
}

/** Counts a dangling link as present, so that reading it fails and rankd does not silently use the defaults. */
export function isPresent(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // If this user cannot enter the folder, assume that the machine-wide file exists, but no other does.
    return path === thisSystem.sharedConfig && codeOf(error) === 'EACCES';
  }
}

/** Throws `config_invalid` if the file does not exist. Ignores other errors, because reading the file reports them. */
function requireExisting(location: ConfigLocation): void {
  try {
    statSync(location.path);
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(cause))) throw missingConfig(location, cause);
  }
}

function missingConfig({ path, name }: ConfigLocation, cause: unknown): RankdError {
  if (isPresent(path)) {
    const message = `The configuration file ${name} is a link to a file that does not exist.`;
    return new RankdError('config_invalid', message, { hint: 'restore the file, or remove the link', cause });
  }
  return new RankdError('config_invalid', `The configuration file ${name} does not exist.`, {
    hint: 'check the path in --config or RANKD_CONFIG; rankd init creates a configuration file',
    cause,
  });
}

export function unreadableConfig({ path, name }: ConfigLocation, cause: unknown): RankdError {
  const code = codeOf(cause);
  if (code === 'ENOENT' || code === 'ENOTDIR') return missingConfig({ path, name }, cause);
  if (code === 'EACCES' || code === 'EPERM') {
    const hint = "run the command as the daemon's user, or give this user read access to the file";
    return new RankdError('no_permission', `This user is not allowed to read the configuration file ${name}.`, {
      hint,
      cause,
    });
  }
  if (code === 'EISDIR') {
    const message = `${name} is a folder, not a file; Docker creates one if the file is missing.`;
    const hint =
      'in Docker: stop the container, remove the folder, put the file there, and start it again; elsewhere: name a file with --config';
    return new RankdError('config_invalid', message, { hint, cause });
  }
  if (code === 'EFBIG') {
    const message = `${name} is larger than ${maxConfigBytes} bytes, the maximum that rankd reads.`;
    const hint = 'name the right file with --config; to create thousands of game keys, use `rankd key create`';
    return new RankdError('config_invalid', message, { hint, cause });
  }
  const hint = 'give the path of a readable YAML file with --config';
  return new RankdError('config_invalid', `The configuration file ${name} cannot be read (${code}).`, { hint, cause });
}

/**
 * Returns the reason to distrust the file; `undefined` if rankd trusts it. rankd trusts every file that `--config` or
 * RANKD_CONFIG names.
 */
export function whyNotTrusted({ path }: ConfigLocation, sources: ConfigLocationSources): string | undefined {
  return namedConfig(sources) === undefined ? whyOthersCanWrite(path, sources) : undefined;
}

/**
 * Explains how another user could have written the file; returns `undefined` if only this user, root or the user who
 * ran sudo could. This matters because the configuration decides where rankd sends the Roblox key.
 */
function whyOthersCanWrite(
  path: string,
  { user, env }: Pick<ConfigLocationSources, 'user' | 'env'>,
): string | undefined {
  if (user === undefined) return undefined;
  const users = trustedIds(user.uid, env['SUDO_UID']);
  const groups = trustedIds(user.gid, env['SUDO_GID']); // with umask 002, the user's own group can write to new files
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

/** Returns `undefined` if this user cannot stat them; reading the file then reports the error. */
function statsOf(path: string) {
  try {
    return { folder: statSync(dirname(path)), entry: lstatSync(path), file: statSync(path, { throwIfNoEntry: false }) };
  } catch {
    return undefined;
  }
}

/** In a sticky folder such as /tmp, users can remove and rename only their own files. */
function isSticky({ mode }: { mode: number }): boolean {
  return (mode & 0o1000) !== 0;
}

/**
 * Throws `config_invalid` if `--config` or RANKD_CONFIG names a file that does not exist. A command that reads only the
 * file's `store` section would otherwise use SQLite.
 */
export function requireNamed(sources: ConfigLocationSources): void {
  const named = namedConfig(sources);
  if (named !== undefined) requireExisting(named);
}

/** Returns files that rankd does not read, but that the user probably meant as the configuration. */
export function overlookedConfigs(sources: ConfigLocationSources): string[] {
  if (sources.configFile === null || namedConfig(sources) !== undefined) return [];
  const places = searchPath(sources).map(({ path }) => path);
  const found = places.findIndex(isPresent);
  return places
    .slice(0, found === -1 ? places.length : found)
    .flatMap((path) => ['rankd.yml', 'rankd.yaml.txt'].map((name) => join(dirname(path), name)))
    .filter(isPresent);
}

export function newConfigPath(sources: ConfigLocationSources): string {
  return namedConfig(sources)?.path ?? join(sources.cwd, 'rankd.yaml');
}

export function isSameFile(one: string, other: string): boolean {
  if (one === other) return true;
  return existsSync(one) && existsSync(other) && realpathSync(one) === realpathSync(other);
}

/** Returns `/` for a user id without an account, which is common in containers. Treats an empty HOME as unset. */
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
