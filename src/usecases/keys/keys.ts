import { RankdError } from '../../base/errors.ts';
import { keyState } from '../../core/access.ts';
import { type FreshSecret, mintKey, newId } from '../../core/api-key.ts';
import type { Key, KeyMode, KeyRules, KeyState, Scope } from '../../core/model.ts';
import type { Clock, KeyRulesChange, Store } from '../../ports/index.ts';

export interface KeyOrder {
  name: string;
  mode: KeyMode;
  scopes: Scope[];
  rules?: KeyRulesChange;
  /** Epoch milliseconds. */
  expiresAt?: number;
}

/** A key and the one and only sight of its secret. */
export interface MintedKey {
  key: Key;
  secret: string;
}

/** Throws `usage` where the rules leave nothing to rank. */
export async function createKey(
  store: Pick<Store, 'createKey'>,
  { rules = {}, ...order }: KeyOrder,
  by: string,
  { secret, stored }: FreshSecret = mintKey(order.mode),
): Promise<MintedKey> {
  const kept = changed({}, rules);
  requireReach(kept);
  return { key: await store.createKey({ ...order, ...kept, id: newId('key'), secret: stored }, by), secret };
}

/** Changes what an existing key may do. Throws `usage` where that leaves nothing to rank. */
export async function setKeyRules(
  store: Pick<Store, 'updateKey'>,
  { key, rules }: { key: Key; rules: KeyRulesChange },
  by: string,
): Promise<Key> {
  requireReach(changed(key, rules));
  return store.updateKey({ keyId: key.id, rules }, by);
}

/** A new secret for the same key; the old one is accepted until `oldExpiresAt` (epoch milliseconds). */
export async function rotateKey(
  store: Pick<Store, 'rotateKey'>,
  { key, oldExpiresAt }: { key: Key; oldExpiresAt: number },
  by: string,
  { secret, stored }: FreshSecret = mintKey(key.mode),
): Promise<MintedKey> {
  return { key: await store.rotateKey({ keyId: key.id, secret: stored, oldExpiresAt }, by), secret };
}

/** The key with this id or name. Throws `not_found`. */
export async function requireKey(store: Pick<Store, 'findKey'>, idOrName: string): Promise<Key> {
  const key = await store.findKey(idOrName);
  if (key !== undefined) return key;
  throw new RankdError('not_found', `There is no key with the id or name "${idOrName}".`, { hint: 'rankd key list' });
}

/**
 * As `requireKey`, for what was done with the key since a moment (epoch milliseconds). Where a key that had the name before can be
 * meant as well, `doubt` gets to know.
 */
export async function requireKeySince(
  store: Pick<Store, 'findKey' | 'listKeys'>,
  { idOrName, since = 0 }: { idOrName: string; since?: number | undefined },
  doubt: (ambiguity: RankdError) => void,
): Promise<Key> {
  const key = await requireKey(store, idOrName);
  if (key.id === idOrName) return key;
  const namesakes = await store.listKeys({ name: idOrName });
  const earlier = namesakes.findLast(({ id, revokedAt = since }) => id !== key.id && revokedAt >= since);
  if (earlier !== undefined) doubt(ambiguous(key, earlier));
  return key;
}

function ambiguous({ id, name }: Key, earlier: Key): RankdError {
  return new RankdError('usage', `The name "${name}" stands for ${id}; before, ${earlier.id} had it.`, {
    hint: `name the key that is meant by its id, such as --key ${earlier.id}; rankd key list shows all`,
  });
}

/** The named key, or the only one that is accepted. Throws `not_found`, or `usage` where there is a choice. */
export async function chooseKey(
  { store, clock }: { store: Pick<Store, 'findKey' | 'listKeys'>; clock: Pick<Clock, 'now'> },
  idOrName: string | undefined,
): Promise<Key> {
  if (idOrName !== undefined) return requireKey(store, idOrName);
  const ended: KeyState[] = ['revoked', 'expired'];
  const keys = await store.listKeys();
  const [key, other] = keys.filter((one) => !ended.includes(keyState(one, clock.now())));
  if (key === undefined) {
    const message = keys.length === 0 ? 'There is no key yet.' : 'Every key is revoked or expired.';
    throw new RankdError('not_found', message, { hint: 'rankd key create NAME' });
  }
  if (other === undefined) return key;
  throw new RankdError('usage', 'There is more than one key; say which one is meant.', {
    hint: `add --key ${key.name} or --key ${other.name}; rankd key list shows all`,
  });
}

/** The rules after the change. */
export function changed(before: KeyRules, change: KeyRulesChange): KeyRules {
  const present = Object.entries({ ...before, ...change }).filter(([, value]) => value !== null);
  return Object.fromEntries(present);
}

function requireReach({ minRank = 0, maxRank = 255 }: KeyRules): void {
  if (minRank <= maxRank) return;
  const message = `The floor (--min-rank ${minRank}) is above the ceiling (--max-rank ${maxRank}): nothing could be ranked.`;
  throw new RankdError('usage', message, { hint: 'choose a lower --min-rank or a higher --max-rank' });
}
