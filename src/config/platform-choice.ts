import { resolve } from 'node:path';
import type { Origin } from './layers.ts';
import type { Problem } from './problem.ts';
import { isQuoted, keyFile, keyVariable, readSecretText, Secret, systemdCredential } from './secret.ts';

export type PlatformChoice =
  | { kind: 'open-cloud'; groupId: number; apiKey: Secret }
  | { kind: 'simulated'; isDefault: boolean };

export interface ChosenPlatform {
  kind: PlatformChoice['kind'];
  /** `undefined` if a required setting is missing or invalid. */
  choice: PlatformChoice | undefined;
  key: PlatformKey | undefined;
  problems: Problem[];
  /** Contains the problem of a missing Roblox key, which rankd reports only if there are no other problems. */
  missing: Problem[];
  warnings: string[];
}

interface PlatformKeySources {
  origins: ReadonlyMap<string, Origin>;
  /** The folder against which a relative path to the key file is resolved. */
  folder: string;
  env: Record<string, string | undefined>;
}

/** If `platform.kind` is not set, a group id selects Roblox. Reads the key only for Roblox. */
export function choosePlatform(sources: PlatformKeySources): ChosenPlatform {
  const { origins } = sources;
  const groupId = origins.get('group.id')?.value;
  const kind = origins.get('platform.kind')?.value ?? (groupId === undefined ? 'simulated' : 'open-cloud');
  if (kind !== 'open-cloud') {
    const choice = { kind: 'simulated', isDefault: origins.get('platform.kind')?.value === undefined } as const;
    return { kind: 'simulated', choice, key: undefined, problems: [], missing: [], warnings: keyWithoutGroup(sources) };
  }
  const key = readPlatformKey(sources);
  const choice: PlatformChoice | undefined =
    typeof groupId === 'number' && key?.secret ? { kind, groupId, apiKey: key.secret } : undefined;
  const problems = [...groupMissing(origins), ...keyProblems(key)];
  const missing = keyMissing(origins, key);
  return { kind, choice, key, problems, missing, warnings: key?.warning === undefined ? [] : [key.warning] };
}

/** Warns about a key without a group id, because the operator probably wants a real group. */
function keyWithoutGroup({ origins, env }: PlatformKeySources): string[] {
  const at = origins.get(keyFile)?.at ?? (env[keyVariable] ? keyVariable : undefined);
  if (at === undefined || origins.get('platform.kind')?.value !== undefined) return [];
  return [
    `There is a Roblox key (${at}) but no group.id, so rankd simulates a group; set group.id to use your own group.`,
  ];
}

function groupMissing(origins: ReadonlyMap<string, Origin>): Problem[] {
  if (origins.get('group.id')?.value !== undefined) return [];
  const text = 'missing; platform.kind open-cloud requires the id of your group';
  return [{ at: origins.get('platform.kind')?.at, setting: 'group.id', text }];
}

function keyProblems(key: PlatformKey | undefined): Problem[] {
  if (key?.problem === undefined) return [];
  const { source, at } = key.origin;
  return [{ at, setting: source === 'file' ? keyFile : undefined, text: key.problem }];
}

function keyMissing(origins: ReadonlyMap<string, Origin>, key: PlatformKey | undefined): Problem[] {
  if (key !== undefined || origins.get(keyFile)?.value !== undefined) return [];
  const at = origins.get('platform.kind')?.at ?? origins.get('group.id')?.at;
  const text =
    'missing; a real group requires a Roblox key: name its file in this setting, or set RANKD_PLATFORM_API_KEY';
  return [{ at, setting: keyFile, text }];
}

interface PlatformKey {
  secret?: Secret;
  origin: KeyOrigin;
  problem?: string;
  warning?: string;
}

type KeyOrigin = Omit<Origin, 'value'>;

/**
 * Reads the key from the first of these that is set: `platform.api_key_file` as a flag, RANKD_PLATFORM_API_KEY,
 * `platform.api_key_file` in the environment, the systemd credential `platform_api_key`, `platform.api_key_file` in the
 * configuration file. This order lets a daemon that gets the key from systemd share that file with its user's commands.
 */
function readPlatformKey({ origins, folder, env }: PlatformKeySources): PlatformKey | undefined {
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

function shadowing(named: Origin | undefined): Pick<Origin, 'shadows'> {
  if (named === undefined || named.value === undefined) return {};
  return { shadows: [{ source: named.source, at: named.at, value: '[redacted]' }] };
}

function readNamedFile(path: string, folder: string, { source, at }: KeyOrigin): PlatformKey {
  const origin = { source, at };
  if (path === '') return { origin }; // the schema reports it
  if (looksLikeKey(path)) return { origin, problem: 'looks like the key itself; give the path of a file with the key' };
  return readKeyFile(resolve(folder, path), origin);
}

/**
 * True for text that may be a key, which rankd never prints: long text that does not look like a path, and any text of
 * 200 or more characters.
 */
function looksLikeKey(path: string): boolean {
  return path.length >= 200 || (path.length >= 32 && !/^(\.{0,2}|~)\//.test(path) && !/\.\w{1,8}$/.test(path));
}

function readKeyFile(path: string, origin: KeyOrigin): PlatformKey {
  const read = readSecretText(path, { checksMode: origin.source !== 'credential' });
  if ('problem' in read) return { origin, problem: read.problem };
  if (read.text === '') return { origin, problem: `${path} is empty; put the Roblox key into it` };
  return { ...checked(read.text, origin), ...(read.warning !== undefined && { warning: read.warning }) };
}

function checked(key: string, origin: KeyOrigin): PlatformKey {
  const problem = flawOfKey(key);
  return problem === undefined ? { origin, secret: new Secret(key) } : { origin, problem };
}

/**
 * Explains why the text can't be a Roblox key; returns `undefined` if it can. A key must be printable ASCII, because
 * Node.js rejects some other characters in a header with an error that quotes the key.
 */
export function flawOfKey(key: string): string | undefined {
  if (key === '') return 'the key is empty';
  if (isCookie(key))
    return 'this is a .ROBLOSECURITY cookie, which lets anyone log in as you; rankd needs an Open Cloud API key (API Keys on the Creator Dashboard)';
  if (/^rk_(live|test)_/.test(key)) return "this is one of rankd's game keys; use the Roblox key here";
  if (isQuoted(key)) return 'the key is in quotes; remove them';
  return /^[!-~]+$/.test(key)
    ? undefined
    : 'the key contains spaces, line breaks or other characters that no Roblox key contains';
}

/** Recognizes a cookie by its name or by the warning at its start, even if it is quoted or split across lines. */
function isCookie(text: string): boolean {
  return /ROBLOSECURITY|_?\|?WARNING:?-*DO-*NOT-*SHARE/i.test(text.replaceAll(/[\s"'`]+/g, ''));
}
