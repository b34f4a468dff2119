import { resolve } from 'node:path';
import type { Origin } from './origin.ts';
import { Secret } from './secret.ts';
import { readSecretText, systemdCredential } from './secret-file.ts';

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
 * is given. With this order, one file serves both the daemon, which gets the key from systemd, and the commands of its user.
 */
export function readPlatformKey({ origins, folder, env }: PlatformKeySources): PlatformKey | undefined {
  const named = origins.get(keyFile);
  const variable = env[keyVariable]?.trim();
  if (variable && named?.source !== 'flag') {
    return checked(variable, { source: 'environment', at: keyVariable, ...shadowing(named) });
  }
  const credential = systemdCredential(env, 'platform_api_key');
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

function readNamedFile(path: string, folder: string, { source, at }: KeyOrigin): PlatformKey {
  const origin = { source, at };
  if (path === '') return { origin }; // the schema asks for a path
  if (looksLikeKey(path))
    return { origin, problem: 'looks like the key itself; it must be the path of a file with the key in it' };
  return readKeyFile(resolve(folder, path), origin);
}

function readKeyFile(path: string, origin: KeyOrigin): PlatformKey {
  const read = readSecretText(path, { isCredential: origin.source === 'credential' });
  if ('problem' in read) return { origin, problem: read.problem };
  return { ...checked(read.text, origin), ...(read.warning !== undefined && { warning: read.warning }) };
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
  if (isCookie(key))
    return 'this is a .ROBLOSECURITY cookie, which logs in as you; rankd needs an Open Cloud key (API Keys on the Creator Dashboard)';
  if (/^rk_(live|test)_/.test(key)) return 'this is a game key; here belongs the Roblox key';
  if (/^(["'`]).*\1$/.test(key)) return 'the key is in quotes; remove them';
  return /^[!-~]+$/.test(key)
    ? undefined
    : 'the key has spaces, line breaks or other characters that no Roblox key has';
}

/** The cookie begins with a warning, which a copy can have in quotes, after its name, or broken into lines. */
function isCookie(text: string): boolean {
  return /ROBLOSECURITY|_?\|?WARNING:?-*DO-*NOT-*SHARE/i.test(text.replaceAll(/[\s"'`]+/g, ''));
}

/** True for a text that is long and unlike a path. Such a value is never shown. */
function looksLikeKey(path: string): boolean {
  return path.length >= 200 || (path.length >= 32 && !/^(\.{0,2}|~)\//.test(path) && !/\.\w{1,8}$/.test(path));
}
