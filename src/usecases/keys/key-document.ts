import { isoOrNull, isoTime } from '../../base/time.ts';
import { keyState } from '../../core/access.ts';
import type { Key, KeyMode, KeyState, WhitelistEntry } from '../../core/model.ts';
import type { KeyVerdict } from './authenticate.ts';

/** A key at `now` (epoch milliseconds); times are ISO 8601. */
export function keyDocument(key: Key, now: number) {
  return {
    id: key.id,
    name: key.name,
    mode: key.mode,
    state: shownState(key, now),
    scopes: key.scopes,
    maxRank: key.maxRank ?? null,
    minRank: key.minRank ?? null,
    direction: key.direction ?? null,
    selfRank: key.selfRank ?? null,
    system: key.isSystem ?? false,
    privileged: key.isPrivileged ?? false,
    anyPlace: key.isAnyPlace ?? false,
    forDiscord: key.isForDiscord ?? false,
    simulated: key.isSimulated ?? false,
    ratePerMinute: key.ratePerMinute ?? null,
    createdAt: isoTime(key.createdAt),
    expiresAt: isoOrNull(key.expiresAt),
    revokedAt: isoOrNull(key.revokedAt),
    pausedAt: isoOrNull(key.pausedAt),
    declaredIn: key.declaredIn ?? null,
    secrets: key.secrets.map(({ masked, createdAt, expiresAt, lastUsedAt, lastPlaceId }) => ({
      masked,
      createdAt: isoTime(createdAt),
      expiresAt: isoOrNull(expiresAt),
      lastUsedAt: isoOrNull(lastUsedAt),
      lastPlaceId: lastPlaceId ?? null,
    })),
  };
}

/** The same with the key's whitelist. */
export function keyWithPlacesDocument({ key, entries }: { key: Key; entries: WhitelistEntry[] }, now: number) {
  const whitelist = entries.map(({ placeId, active, note, declaredIn = null }) => ({
    placeId,
    active,
    note,
    declaredIn,
  }));
  return { ...keyDocument(key, now), whitelist };
}

/** The same with its number of changes in the last 24 hours; null if that is not counted. */
export function usedKeyDocument(
  { changesInDay, ...kept }: { key: Key; entries: WhitelistEntry[]; changesInDay: number | undefined },
  now: number,
) {
  return { ...keyWithPlacesDocument(kept, now), changesInDay: changesInDay ?? null };
}

/** The check of a secret; `key` is null if no key ever had it. */
export function keyVerdictDocument({ key, reason }: KeyVerdict, now: number) {
  return {
    accepted: reason === undefined,
    reason: reason ?? null,
    key: key === undefined ? null : keyDocument(key, now),
  };
}

/** The declaration of a secret; `out` is the file that a new one was written to. */
export function keyHashDocument(hash: string, { mode, out }: { mode: KeyMode; out: string | undefined }) {
  return { hash, mode, out: out ?? null };
}

/** The state including the breaker's pause, which only matters for a key that would otherwise be accepted. */
export function shownState(key: Key, now: number): KeyState | 'paused' {
  const state = keyState(key, now);
  return key.pausedAt !== undefined && state !== 'revoked' && state !== 'expired' ? 'paused' : state;
}
