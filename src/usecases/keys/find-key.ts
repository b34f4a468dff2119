import { RankdError } from '../../base/errors.ts';
import { keyState } from '../../core/access.ts';
import { actorOf } from '../../core/discord-person.ts';
import type { Key, KeyState } from '../../core/model.ts';
import type { Clock, Store } from '../../ports/index.ts';

/** The key with this id or name. Throws `not_found`. */
export async function requireKey({ store }: { store: Pick<Store, 'findKey'> }, idOrName: string): Promise<Key> {
  const key = await store.findKey(idOrName);
  if (key !== undefined) return key;
  throw new RankdError('not_found', `There is no key with the id or name "${idOrName}".`, { hint: 'rankd key list' });
}

/** Called if a name can mean another key as well. */
export type OnAmbiguity = (ambiguity: RankdError) => void;

/**
 * The selection with the id of its key, which is given by id or name. If another key had the same name at some time
 * since the selection begins, calls `onAmbiguity`. Throws `not_found` for a key that does not exist.
 */
export async function withKeyId<Selection extends { since?: number | undefined; by?: string | undefined }>(
  { store }: { store: Pick<Store, 'findKey' | 'listKeys' | 'findDiscordPerson'> },
  { key: idOrName, ...given }: Selection & { key: string | undefined },
  onAmbiguity: OnAmbiguity,
): Promise<Omit<Selection, 'key'> & { keyId?: string }> {
  const by = await asRecorded(store, given.by);
  const selection = by === undefined ? given : { ...given, by };
  if (idOrName === undefined) return selection;
  const key = await requireKey({ store }, idOrName);
  const { since = 0 } = selection;
  const namesakes = key.id === idOrName ? [] : await store.listKeys({ name: idOrName });
  const earlier = namesakes.findLast(({ id, revokedAt = since }) => id !== key.id && revokedAt >= since);
  if (earlier !== undefined) onAmbiguity(ambiguous(key, earlier));
  return { ...selection, keyId: key.id };
}

/** A person in Discord (`discord:<id>`) as history and audit name them; all others are named as they are. */
async function asRecorded(
  store: Pick<Store, 'findDiscordPerson'>,
  by: string | undefined,
): Promise<string | undefined> {
  const [, discordId] = /^discord:(\d+)$/.exec(by ?? '') ?? [];
  const person = discordId === undefined ? undefined : await store.findDiscordPerson(discordId);
  return person === undefined ? by : actorOf(person);
}

function ambiguous({ id, name }: Key, earlier: Key): RankdError {
  return new RankdError('usage', `The name "${name}" now means ${id}; earlier, ${earlier.id} had it.`, {
    hint: `name the key by its id, such as --key ${earlier.id}; rankd key list shows all`,
  });
}

/** The named key, or the only one of a game that is accepted. Throws `not_found`, and `usage` if more than one key could be meant. */
export async function chooseKey(
  { store, clock }: { store: Pick<Store, 'findKey' | 'listKeys'>; clock: Pick<Clock, 'now'> },
  idOrName: string | undefined,
): Promise<Key> {
  if (idOrName !== undefined) return requireKey({ store }, idOrName);
  const keys = await store.listKeys();
  const [key, other] = keys.filter((one) => !one.isForDiscord && !ended.includes(keyState(one, clock.now())));
  if (key === undefined) {
    const message = keys.length === 0 ? 'There is no key yet.' : 'Every key is revoked or expired.';
    throw new RankdError('not_found', message, { hint: 'rankd key create NAME' });
  }
  if (other === undefined) return key;
  throw new RankdError('usage', 'There is more than one key; say which one you mean.', {
    hint: `add --key ${key.name} or --key ${other.name}; rankd key list shows all`,
  });
}

/** The key of this id, if it can change ranks now: it has not ended and is not paused. */
export async function findUsableKey(
  { store, clock }: { store: Pick<Store, 'findKey'>; clock: Pick<Clock, 'now'> },
  id: string,
): Promise<Key | undefined> {
  const key = await store.findKey(id);
  const isEnded = key === undefined || ended.includes(keyState(key, clock.now()));
  return isEnded || key.pausedAt !== undefined ? undefined : key;
}

const ended: KeyState[] = ['revoked', 'expired'];

/** True if an unrevoked key has the name. */
export async function isNameTaken({ store }: { store: Pick<Store, 'findKey'> }, name: string): Promise<boolean> {
  const key = await store.findKey(name);
  return key?.name === name && key.revokedAt === undefined;
}
