import { isoTime } from '../../base/time.ts';
import type { Key, WhitelistEntry } from '../../core/model.ts';
import type { PlaceVerdict } from '../whitelist/whitelist.ts';

/** A place on a key's whitelist; times are ISO 8601. */
export function entryDocument(key: Key, { placeId, active, note, addedAt, declaredIn }: WhitelistEntry) {
  return {
    placeId,
    keyId: key.id,
    keyName: key.name,
    active,
    note,
    addedAt: isoTime(addedAt),
    declaredIn: declaredIn ?? null,
  };
}

/** The check of a key for a place; `entry` is null if the place is not on its whitelist. */
export function placeVerdictDocument({ key, entry, isAllowed }: PlaceVerdict) {
  return { allowed: isAllowed, entry: entry === undefined ? null : entryDocument(key, entry) };
}

/** A changed place, with the result in words. */
export function changedEntryDocument(key: Key, entry: WhitelistEntry & { outcome: string }) {
  return { ...entryDocument(key, entry), outcome: entry.outcome };
}
