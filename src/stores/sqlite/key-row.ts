import type { Key, KeySecret } from '../../core/model.ts';
import { withoutNulls } from '../row.ts';
import type { RowOf } from './engine/row.ts';
import { ruleColumns } from './key-rules.ts';

export type KeyRow = RowOf<Key>;

/** The columns of a `KeyRow` from `keys AS k`, with the secrets that are accepted at `@now`, newest first. */
export const keyColumns = `
  k.id, k.name, k.mode, k.scopes, ${ruleColumns},
  k.created_at AS createdAt, k.expires_at AS expiresAt,
  k.revoked_at AS revokedAt, k.paused_at AS pausedAt, k.resumed_at AS resumedAt, k.is_simulated AS isSimulated,
  iif(k.revoked_at IS NULL, k.declared_in, NULL) AS declaredIn,
  (SELECT json_group_array(
            json_object('masked', s.masked, 'createdAt', s.created_at, 'replacedAt', s.replaced_at,
                        'expiresAt', s.expires_at, 'lastUsedAt', s.last_used_at, 'lastPlaceId', s.last_place_id)
            ORDER BY s.seq DESC)
   FROM key_secrets AS s
   WHERE s.key_id = k.id AND (s.expires_at IS NULL OR s.expires_at > @now)) AS secrets`;

export function toKey({
  scopes,
  secrets,
  isSystem,
  isPrivileged,
  isAnyPlace,
  isSimulated,
  isForDiscord,
  ...row
}: KeyRow): Key {
  const accepted: RowOf<KeySecret>[] = JSON.parse(secrets);
  const flags = {
    ...(isSystem === 1 && { isSystem: true }),
    ...(isPrivileged === 1 && { isPrivileged: true }),
    ...(isAnyPlace === 1 && { isAnyPlace: true }),
    ...(isSimulated === 1 && { isSimulated: true }),
    ...(isForDiscord === 1 && { isForDiscord: true }),
  };
  return { ...withoutNulls(row), ...flags, scopes: JSON.parse(scopes), secrets: accepted.map(withoutNulls) };
}
