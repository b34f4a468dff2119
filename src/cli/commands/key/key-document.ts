import { systemClock } from '../../../base/clock.ts';
import { keyState } from '../../../core/access.ts';
import type { Key } from '../../../core/model.ts';
import { isoOrNull } from '../../output/time.ts';

/** A key as `--json` shows it; times are ISO 8601. */
export function keyDocument(key: Key): Record<string, unknown> {
  return {
    id: key.id,
    name: key.name,
    mode: key.mode,
    state: stateOf(key),
    scopes: key.scopes,
    maxRank: key.maxRank ?? null,
    minRank: key.minRank ?? null,
    direction: key.direction ?? null,
    selfRank: key.selfRank ?? null,
    system: key.isSystem ?? false,
    ratePerMinute: key.ratePerMinute ?? null,
    createdAt: isoOrNull(key.createdAt),
    expiresAt: isoOrNull(key.expiresAt),
    revokedAt: isoOrNull(key.revokedAt),
    pausedAt: isoOrNull(key.pausedAt),
    declaredIn: key.declaredIn ?? null,
    secrets: key.secrets.map(({ masked, createdAt, expiresAt, lastUsedAt, lastPlaceId }) => ({
      masked,
      createdAt: isoOrNull(createdAt),
      expiresAt: isoOrNull(expiresAt),
      lastUsedAt: isoOrNull(lastUsedAt),
      lastPlaceId: lastPlaceId ?? null,
    })),
  };
}

export function stateOf(key: Key): string {
  const state = keyState(key, systemClock.now());
  return key.pausedAt !== undefined && state !== 'revoked' && state !== 'expired' ? 'paused' : state;
}
