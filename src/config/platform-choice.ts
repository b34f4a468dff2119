import type { Origin } from './origin.ts';
import { keyFile, keyVariable, type PlatformKey, type PlatformKeySources, readPlatformKey } from './platform-key.ts';
import type { Problem } from './problem.ts';
import type { Secret } from './secret.ts';

/** Which platform to run on, with what only that one needs. */
export type PlatformChoice =
  | { kind: 'open-cloud'; groupId: number; apiKey: Secret }
  | { kind: 'simulated'; isDefault: boolean };

export interface ChosenPlatform {
  kind: PlatformChoice['kind'];
  /** `undefined` if something it needs is missing or wrong. */
  choice: PlatformChoice | undefined;
  key: PlatformKey | undefined;
  problems: Problem[];
  /** What is missing yet; it need not be told while something is wrong. */
  missing: Problem[];
  warnings: string[];
}

/** Without `platform.kind`, naming a group means the real one. The key is read only for that one. */
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

/** Whoever set up a key meant the real group. */
function keyWithoutGroup({ origins, env }: PlatformKeySources): string[] {
  const at = origins.get(keyFile)?.at ?? (env[keyVariable] ? keyVariable : undefined);
  if (at === undefined || origins.get('platform.kind')?.value !== undefined) return [];
  return [
    `There is a Roblox key (${at}) but no group.id, so this is a simulated group; set group.id to rank in yours.`,
  ];
}

function groupMissing(origins: ReadonlyMap<string, Origin>): Problem[] {
  if (origins.get('group.id')?.value !== undefined) return [];
  const text = 'missing; platform.kind open-cloud needs the id of the group to rank in';
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
  const text = 'missing; open-cloud needs a Roblox key: name its file here, or set RANKD_PLATFORM_API_KEY';
  return [{ at, setting: keyFile, text }];
}
