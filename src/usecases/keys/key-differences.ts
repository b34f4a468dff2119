import type { Key, KeyMode, KeyRules, Scope } from '../../core/model.ts';
import { changed, type KeyOrder } from './keys.ts';

/** In which ways a key is not what is ordered: a sentence for each. Nothing is said of when it expires, only whether. */
export function differences(key: Key, { mode, scopes, rules = {}, expiresAt }: KeyOrder): string[] {
  const is: Definition = { ...key, expires: key.expiresAt !== undefined };
  const asked: Definition = { ...changed({}, rules), mode, scopes, expires: expiresAt !== undefined };
  return (Object.keys(words) as Array<keyof Definition>)
    .map((field) => ({ field, is: shown(is[field]), asked: shown(asked[field]) }))
    .filter(({ is, asked }) => is !== asked)
    .map(({ field, is, asked }) => `${words[field]} is ${is}, not ${asked}`);
}

type Definition = KeyRules & { mode: KeyMode; scopes: Scope[]; expires: boolean };

const words = {
  mode: 'mode',
  scopes: 'scope',
  expires: 'whether it expires',
  maxRank: 'max rank',
  minRank: 'min rank',
  direction: 'direction',
  selfRank: 'self-rank',
  isSystem: 'system',
  ratePerMinute: 'rate',
} as const satisfies Record<keyof Definition, string>;

function shown(value: Definition[keyof Definition]): string {
  if (Array.isArray(value)) return value.toSorted().join(' and ');
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value ?? 'unset');
}
