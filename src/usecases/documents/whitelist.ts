import { isoTime } from '../../base/iso-time.ts';
import type { Key, WhitelistEntry } from '../../core/model.ts';

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
