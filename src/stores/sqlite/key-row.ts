import type { Key, KeyMode, KeySecret } from '../../core/model.ts';
import { withoutNulls } from './row.ts';

/** A key as it is selected: lists are JSON. */
export interface KeyRow {
  id: string;
  name: string;
  mode: KeyMode;
  scopes: string;
  maxRank: number | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  pausedAt: number | null;
  secrets: string;
}

/** The columns of a `KeyRow` from `keys AS k`, with the secrets that are accepted at `@now`, newest first. */
export const keyColumns = `
  k.id, k.name, k.mode, k.scopes, k.max_rank AS maxRank, k.created_at AS createdAt, k.expires_at AS expiresAt,
  k.revoked_at AS revokedAt, k.paused_at AS pausedAt,
  (SELECT json_group_array(json_object('masked', s.masked, 'createdAt', s.created_at, 'expiresAt', s.expires_at)
            ORDER BY s.seq DESC)
   FROM key_secrets AS s
   WHERE s.key_id = k.id AND (s.expires_at IS NULL OR s.expires_at > @now)) AS secrets`;

export function toKey({ scopes, secrets, ...row }: KeyRow): Key {
  const accepted: Array<Omit<KeySecret, 'expiresAt'> & { expiresAt: number | null }> = JSON.parse(secrets);
  return { ...withoutNulls(row), scopes: JSON.parse(scopes), secrets: accepted.map(withoutNulls) };
}
