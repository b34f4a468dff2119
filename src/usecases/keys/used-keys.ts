import type { Key, WhitelistEntry } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

export interface UsedKey {
  key: Key;
  entries: WhitelistEntry[];
  changesInDay: number | undefined;
}

/** Keys with their places, oldest first. `ofKeys`: how many changes each of them asked for; `undefined` if that is not known. */
export async function listUsedKeys(
  { store }: Pick<Ports, 'store'>,
  { limit, ofKeys }: { limit: number; ofKeys: ReadonlyMap<string, number> | undefined },
): Promise<UsedKey[]> {
  const [keys, entries] = await Promise.all([store.listKeys({ limit }), store.listEntries({})]);
  const byKey = Map.groupBy(entries, ({ keyId }) => keyId);
  return keys.map((key) => ({
    key,
    entries: byKey.get(key.id) ?? [],
    changesInDay: ofKeys && (ofKeys.get(key.id) ?? 0),
  }));
}
