import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { codeOf } from '../base/error-code.ts';
import { thisSystem } from '../base/system.ts';
import type { Origin } from './origin.ts';
import { Secret } from './secret.ts';

/** The setting that names the file with the key. */
export const keyFile = 'platform.api_key_file';

/** The variable that holds the key itself. */
export const keyVariable = 'RANKD_PLATFORM_API_KEY';

export interface PlatformKeySources {
  origins: ReadonlyMap<string, Origin>;
  /** The folder that a relative path of the key file starts from. */
  folder: string;
  env: Record<string, string | undefined>;
}

/** Where the key comes from. It never has the value. */
export type KeyOrigin = Omit<Origin, 'value'>;

/** The Open Cloud API key and its origin, or what is wrong with it. */
export interface PlatformKey {
  secret?: Secret;
  origin: KeyOrigin;
  problem?: string;
  warning?: string;
}

/**
 * The key, from the first of these that is given: `platform.api_key_file` as a flag, RANKD_PLATFORM_API_KEY, `platform.api_key_file` in the
 * environment, the systemd credential `platform_api_key`, `platform.api_key_file` in the file. `undefined` if none of them
 * is given. With this order, one file serves both the daemon, which gets the key from systemd, and root's commands beside it.
 */
export function readPlatformKey({ origins, folder, env }: PlatformKeySources): PlatformKey | undefined {
  const named = origins.get(keyFile);
  const variable = env[keyVariable]?.trim();
  if (variable && named?.source !== 'flag') {
    return checked(variable, { source: 'environment', at: keyVariable, ...shadowing(named) });
  }
  const credential = systemdCredential(env);
  if (credential !== undefined && named?.source !== 'flag' && named?.source !== 'environment') {
    return readKeyFile(credential, { source: 'credential', at: credential, ...shadowing(named) });
  }
  return typeof named?.value === 'string' ? readNamedFile(named.value, folder, named) : undefined;
}

/** The key file, if another source of the key hides it. */
function shadowing(named: Origin | undefined): Pick<Origin, 'shadows'> {
  if (named === undefined || named.value === undefined) return {};
  return { shadows: [{ source: named.source, at: named.at, value: '[redacted]' }] };
}

function systemdCredential(env: PlatformKeySources['env']): string | undefined {
  const directory = env['CREDENTIALS_DIRECTORY'];
  const credential = directory && join(directory, 'platform_api_key');
  return credential && existsSync(credential) ? credential : undefined;
}

function readNamedFile(path: string, folder: string, { source, at }: KeyOrigin): PlatformKey {
  const origin = { source, at };
  if (path === '') return { origin }; // the schema asks for a path
  if (looksLikeKey(path))
    return { origin, problem: 'looks like the key itself; it must be the path of a file with the key in it' };
  return readKeyFile(resolve(folder, path), origin);
}

function readKeyFile(path: string, origin: KeyOrigin): PlatformKey {
  try {
    const key = checked(readFileSync(path, 'utf8').trim(), origin);
    const isOpen = thisSystem.hasModes && origin.source !== 'credential' && (statSync(path).mode & 0o044) !== 0;
    return isOpen
      ? {
          ...key,
          warning: `${path} can be read by other users of this machine; run: ${thisSystem.commands.closeFile(path)}`,
        }
      : key;
  } catch (error) {
    return { origin, problem: `${path} ${whyUnreadable(error)}` };
  }
}

function checked(key: string, origin: KeyOrigin): PlatformKey {
  const problem = flawOfKey(key);
  return problem === undefined ? { origin, secret: new Secret(key) } : { origin, problem };
}

/**
 * Why this can't be a key; `undefined` if it may be one. A key is printable ASCII: anything else can't be sent in a header, and the
 * error would show the key.
 */
export function flawOfKey(key: string): string | undefined {
  if (key === '') return 'the key is empty';
  if (/^rk_(live|test)_/.test(key)) return 'this is a game key; here belongs the Roblox key';
  if (/^(["'`]).*\1$/.test(key)) return 'the key is in quotes; remove them';
  return /^[!-~]+$/.test(key)
    ? undefined
    : 'the key has spaces, line breaks or other characters that no Roblox key has';
}

/** True for a text that is long and unlike a path. Such a value is never shown. */
function looksLikeKey(path: string): boolean {
  return path.length >= 200 || (path.length >= 32 && !/^(\.{0,2}|~)\//.test(path) && !/\.\w{1,8}$/.test(path));
}

function whyUnreadable(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist';
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user';
  if (code === 'EISDIR')
    return 'is a folder, and no file; Docker makes one if the file is missing: stop the container, remove the folder and put the file there';
  return `cannot be read (${code})`;
}
