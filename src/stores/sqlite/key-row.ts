import type { Key, KeyMode } from '../../core/model.ts';
import { type RulesRow, ruleColumns } from './key-rules.ts';
import { withoutNulls } from './row.ts';

/** A key as it is selected: lists are JSON. */
export interface KeyRow extends RulesRow {
  id: string;
  name: string;
  mode: KeyMode;
  scopes: string;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  pausedAt: number | null;
  declaredIn: string | null;
  secrets: string;
}

interface SecretRow {
  masked: string;
  createdAt: number;
  replacedAt: number | null;
  expiresAt: number | null;
  lastUsedAt: number | null;
  lastPlaceId: number | null;
}

/** The columns of a `KeyRow` from `keys AS k`, with the secrets that are accepted at `@now`, newest first. */
export const keyColumns = `
  k.id, k.name, k.mode, k.scopes, ${ruleColumns},
  k.created_at AS createdAt, k.expires_at AS expiresAt,
  k.revoked_at AS revokedAt, k.paused_at AS pausedAt,
  iif(k.revoked_at IS NULL, k.declared_in, NULL) AS declaredIn,
  (SELECT json_group_array(
            json_object('masked', s.masked, 'createdAt', s.created_at, 'replacedAt', s.replaced_at,
                        'expiresAt', s.expires_at, 'lastUsedAt', s.last_used_at, 'lastPlaceId', s.last_place_id)
            ORDER BY s.seq DESC)
   FROM key_secrets AS s
   WHERE s.key_id = k.id AND (s.expires_at IS NULL OR s.expires_at > @now)) AS secrets`;

export function toKey({ scopes, secrets, isSystem, ...row }: KeyRow): Key {
  const accepted: SecretRow[] = JSON.parse(secrets);
  const system = isSystem === 1 ? { isSystem: true } : {};
  return { ...withoutNulls(row), ...system, scopes: JSON.parse(scopes), secrets: accepted.map(withoutNulls) };
}
