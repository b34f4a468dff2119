import type { Key, WhitelistEntry } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import { listKeys } from './keys.ts';

export interface UsedKey {
  key: Key;
  entries: WhitelistEntry[];
  changesInDay: number | undefined;
}

/** As `listKeys`, each with its places. `ofKeys`: how many changes each of them asked for; `undefined` if that is not known. */
export async function listUsedKeys(
  { store }: Pick<Ports, 'store'>,
  { ofKeys, ...page }: { limit: number; after?: string; ofKeys: ReadonlyMap<string, number> | undefined },
): Promise<{ keys: UsedKey[]; next: string | undefined }> {
  const { keys, next } = await listKeys({ store }, page);
  const used = keys.map(async (key) => ({
    key,
    entries: await store.listEntries({ keyId: key.id }),
    changesInDay: ofKeys && (ofKeys.get(key.id) ?? 0),
  }));
  return { keys: await Promise.all(used), next };
}
