import type { Key, WhitelistEntry } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import { listKeys } from './keys.ts';

export interface UsedKey {
  key: Key;
  entries: WhitelistEntry[];
  changesInDay: number | undefined;
}

/**
 * Like `listKeys`, with the places of each key. `ofKeys`: the number of changes of each key; `undefined` if unknown.
 */
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
