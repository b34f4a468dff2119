import { isoOrNull, isoTime } from '../../base/time.ts';
import { keyState } from '../../core/access.ts';
import type { Key, KeyMode, KeyState, WhitelistEntry } from '../../core/model.ts';
import type { KeyVerdict } from './authenticate.ts';

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

export function keyWithPlacesDocument({ key, entries }: { key: Key; entries: WhitelistEntry[] }, now: number) {
  const whitelist = entries.map(({ placeId, active, note, declaredIn = null }) => ({
    placeId,
    active,
    note,
    declaredIn,
  }));
  return { ...keyDocument(key, now), whitelist };
}

export function usedKeyDocument(
  { changesInDay, ...kept }: { key: Key; entries: WhitelistEntry[]; changesInDay: number | undefined },
  now: number,
) {
  return { ...keyWithPlacesDocument(kept, now), changesInDay: changesInDay ?? null };
}

export function keyVerdictDocument({ key, reason }: KeyVerdict, now: number) {
  return {
    accepted: reason === undefined,
    reason: reason ?? null,
    key: key === undefined ? null : keyDocument(key, now),
  };
}

/** `out` is the file to which a new secret was written. */
export function keyHashDocument(hash: string, { mode, out }: { mode: KeyMode; out: string | undefined }) {
  return { hash, mode, out: out ?? null };
}

/** Returns the key's state, or `paused` if the key is paused and would otherwise be accepted. */
export function shownState(key: Key, now: number): KeyState | 'paused' {
  const state = keyState(key, now);
  return key.pausedAt !== undefined && state !== 'revoked' && state !== 'expired' ? 'paused' : state;
}
