import { withoutKeys } from '../core/api-key.ts';
import type { KeyDeclaration, KeyRules } from '../core/model.ts';
import type { DeclaredKeySettings } from './declared-key-schema.ts';

/** A game key that the configuration declares. */
export interface DeclaredKey extends KeyDeclaration {
  /** Where the file has its name and hash: `file:line:col`. */
  at: { name: string; hash: string };
}

/** `at` says where the file has a part of the entry: `file:line:col`. */
export function toDeclaredKey(settings: DeclaredKeySettings, at: (...path: PropertyKey[]) => string): DeclaredKey {
  const { name, hash, mode, scopes, expires_at, whitelist } = settings;
  return {
    name,
    hash,
    mode,
    scopes: [...new Set(scopes)],
    rules: rulesIn(settings),
    ...(expires_at !== undefined && { expiresAt: expires_at }),
    declaredIn: lineOf(at()),
    whitelist: { placeIds: [...new Set(whitelist)], declaredIn: lineOf(at('whitelist')) },
    at: { name: at('name'), hash: at('hash') },
  };
}

function rulesIn({
  max_rank,
  min_rank,
  direction,
  self_rank,
  system,
  privileged,
  any_place,
  rate,
}: DeclaredKeySettings): KeyRules {
  return {
    ...(max_rank !== undefined && { maxRank: max_rank }),
    ...(min_rank !== undefined && { minRank: min_rank }),
    ...(direction !== undefined && { direction }),
    ...(self_rank === 'deny' && { selfRank: self_rank }),
    ...(system && { isSystem: system }),
    ...(privileged && { isPrivileged: privileged }),
    ...(any_place && { isAnyPlace: any_place }),
    ...(rate !== undefined && { ratePerMinute: rate }),
  };
}

/** `rankd.yaml:31:5` → `rankd.yaml:31`. The database keeps it. */
function lineOf(location: string): string {
  return withoutKeys(location.replace(/:\d+$/, ''));
}
