import { RankdError } from '../../base/errors.ts';
import { keyState } from '../../core/access.ts';
import { actorOf } from '../../core/discord-person.ts';
import type { Key, KeyState } from '../../core/model.ts';
import type { Clock, Store } from '../../ports/index.ts';

export async function requireKey({ store }: { store: Pick<Store, 'findKey'> }, idOrName: string): Promise<Key> {
  const key = await store.findKey(idOrName);
  if (key !== undefined) return key;
  throw new RankdError('not_found', `There is no key with the id or name "${idOrName}".`, { hint: 'rankd key list' });
}

export type OnAmbiguity = (ambiguity: RankdError) => void;

/**
 * Resolves a selection's key (id or name) to its id, and a Discord user to the actor recorded for that user. Calls
 * `onAmbiguity` if a different key had the same name during the selected period. Throws `not_found` for an unknown key.
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

/**
 * Returns the actor that the history and the audit log record for the Discord user `discord:<id>`. Returns any other
 * `by` unchanged.
 */
async function asRecorded(
  store: Pick<Store, 'findDiscordPerson'>,
  by: string | undefined,
): Promise<string | undefined> {
  const [, discordId] = /^discord:(\d+)$/.exec(by ?? '') ?? [];
  const person = discordId === undefined ? undefined : await store.findDiscordPerson(discordId);
  return person === undefined ? by : actorOf(person);
}

function ambiguous({ id, name }: Key, earlier: Key): RankdError {
  return new RankdError(
    'usage',
    `The name "${name}" now belongs to ${id}; before that, it belonged to ${earlier.id}.`,
    {
      hint: `use the id of the key, such as --key ${earlier.id}; rankd key list shows all`,
    },
  );
}

/**
 * Returns the given key or, by default, the only accepted game key. Throws `not_found` if there is none, and `usage` if
 * there are several.
 */
export async function chooseKey(
  { store, clock }: { store: Pick<Store, 'findKey' | 'listKeys'>; clock: Pick<Clock, 'now'> },
  idOrName: string | undefined,
): Promise<Key> {
  if (idOrName !== undefined) return requireKey({ store }, idOrName);
  const keys = (await store.listKeys()).filter(({ isForDiscord }) => !isForDiscord);
  const [key, other] = keys.filter((one) => !ended.includes(keyState(one, clock.now())));
  if (key === undefined) {
    const message = keys.length === 0 ? 'There is no game key yet.' : 'Every game key is revoked or expired.';
    throw new RankdError('not_found', message, { hint: 'rankd key create NAME' });
  }
  if (other === undefined) return key;
  throw new RankdError('usage', 'There is more than one key to choose from.', {
    hint: `add --key ${key.name} or --key ${other.name}; rankd key list shows all`,
  });
}

export async function findUsableKey(
  { store, clock }: { store: Pick<Store, 'findKey'>; clock: Pick<Clock, 'now'> },
  id: string,
): Promise<Key | undefined> {
  const key = await store.findKey(id);
  const isEnded = key === undefined || ended.includes(keyState(key, clock.now()));
  return isEnded || key.pausedAt !== undefined ? undefined : key;
}

const ended: KeyState[] = ['revoked', 'expired'];

export async function isNameTaken({ store }: { store: Pick<Store, 'findKey'> }, name: string): Promise<boolean> {
  const key = await store.findKey(name);
  return key?.name === name && key.revokedAt === undefined;
}
