import type { Key, KeyMode, KeyRules, Scope } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import { type KeyRequest, withRules } from './keys.ts';

/** The unrevoked key of this name, with a sentence for each difference from the request. */
export async function existingKey(
  { store }: Pick<Ports, 'store'>,
  request: KeyRequest,
): Promise<{ key: Key; differs: string[] } | undefined> {
  const key = await store.findKey(request.name);
  return key === undefined || key.revokedAt !== undefined ? undefined : { key, differs: differences(key, request) };
}

/**
 * The differences of the key from the request, a sentence each. The time of expiry does not count, only its presence.
 */
function differences(key: Key, { mode, scopes, rules = {}, expiresAt }: KeyRequest): string[] {
  const is: Definition = { ...key, expires: key.expiresAt !== undefined };
  const asked: Definition = { ...withRules({}, rules), mode, scopes, expires: expiresAt !== undefined };
  return (Object.keys(words) as Array<keyof Definition>)
    .map((field) => ({ field, is: shown(is[field]), asked: shown(asked[field]) }))
    .filter(({ is, asked }) => is !== asked)
    .map(({ field, is, asked }) => `${words[field]} is ${is}, not ${asked}`);
}

type Definition = Omit<KeyRules, 'maxRankRole' | 'minRankRole'> & { mode: KeyMode; scopes: Scope[]; expires: boolean };

const words = {
  mode: 'mode',
  scopes: 'scope',
  expires: 'whether it expires',
  maxRank: 'max rank',
  minRank: 'min rank',
  direction: 'direction',
  selfRank: 'self-rank',
  isSystem: 'system',
  isPrivileged: 'privileged',
  isAnyPlace: 'any place',
  ratePerMinute: 'rate',
  isForDiscord: 'for Discord',
} as const satisfies Record<keyof Definition, string>;

function shown(value: Definition[keyof Definition]): string {
  if (Array.isArray(value)) return value.toSorted().join(' and ');
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value ?? 'unset');
}
