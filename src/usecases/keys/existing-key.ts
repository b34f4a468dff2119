import type { Key, KeyMode, KeyRules, Scope } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import { type KeyRequest, withRules } from './keys.ts';

/** Returns the unrevoked key with this name, and a sentence for each difference from the request. */
export async function existingKey(
  { store }: Pick<Ports, 'store'>,
  request: KeyRequest,
): Promise<{ key: Key; differs: string[] } | undefined> {
  const key = await store.findKey(request.name);
  return key === undefined || key.revokedAt !== undefined ? undefined : { key, differs: differences(key, request) };
}

/**
 * Describes each difference between the key and the request. Compares whether each has an expiry, but not its time.
 */
function differences(key: Key, { mode, scopes, rules = {}, expiresAt }: KeyRequest): string[] {
  const is: Definition = { ...key, expires: key.expiresAt !== undefined };
  const asked: Definition = { ...withRules({}, rules), mode, scopes, expires: expiresAt !== undefined };
  return (Object.keys(differenceTexts) as Array<keyof Definition>)
    .map((field) => ({ field, is: shown(is[field]), asked: shown(asked[field]) }))
    .filter(({ is, asked }) => is !== asked)
    .map(({ field, is, asked }) => differenceTexts[field](is, asked));
}

type Definition = Omit<KeyRules, 'maxRankRole' | 'minRankRole'> & { mode: KeyMode; scopes: Scope[]; expires: boolean };

/** Describes a difference between the key's value and the requested one. An unset value is an empty string. */
type DescribeDifference = (is: string, asked: string) => string;

const differenceTexts = {
  mode: setting('mode'),
  scopes: setting('scope'),
  expires: (is) =>
    is === '' ? 'the key has no expiry, but your request has one' : 'the key expires, but your request has no expiry',
  maxRank: setting('maximum rank'),
  minRank: setting('minimum rank'),
  direction: setting('direction'),
  selfRank: setting('rule for self-ranking'),
  isSystem: permission('--system'),
  isPrivileged: permission('--privileged'),
  isAnyPlace: permission('--any-place'),
  ratePerMinute: setting('rate limit'),
  isForDiscord: permission('--for-discord'),
} as const satisfies Record<keyof Definition, DescribeDifference>;

function setting(name: string): DescribeDifference {
  return (is, asked) => {
    if (is === '') return `the key has no ${name}, but your request sets ${asked}`;
    return `the key's ${name} is ${is}, but your request sets ${asked === '' ? 'none' : asked}`;
  };
}

function permission(flag: string): DescribeDifference {
  return (is) =>
    is === '' ? `your request has ${flag}, but the key does not` : `the key has ${flag}, but your request does not`;
}

function shown(value: Definition[keyof Definition]): string {
  if (Array.isArray(value)) return value.toSorted().join(' and ');
  return value === false ? '' : String(value ?? '');
}
