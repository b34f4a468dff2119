import { RankdError } from '../../base/errors.ts';
import { keyState } from '../../core/access.ts';
import { mintKey, newId } from '../../core/api-key.ts';
import { refusalOfDeclared } from '../../core/declarations.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import {
  judgeAdoption,
  judgeNewKey,
  judgePause,
  judgeRevocation,
  judgeRotation,
  judgeRules,
  type KeyRulesChange,
  refusalOfSecret,
} from '../../core/key-changes.ts';
import type { Key, KeyMode, KeyRules, Scope, WhitelistEntry } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import { addPlaces } from '../whitelist/whitelist.ts';
import { requireKey } from './find-key.ts';

export interface KeyRequest {
  name: string;
  mode: KeyMode;
  scopes: Scope[];
  rules?: KeyRulesChange;
  /** Epoch milliseconds. */
  expiresAt?: number;
  /** True if the key is valid only for a simulated group. */
  isSimulated?: boolean;
}

/** A key with its secret, which is shown only once. */
export interface MintedKey {
  key: Key;
  secret: string;
}

/**
 * Saves a new secret for its owner. Called before the secret is stored, so that rankd never accepts a secret that its
 * owner has not received. Returns a function that deletes the saved secret again, in case the store fails.
 */
export type SaveSecret = (secret: string) => () => void;

export const saveNowhere: SaveSecret = () => () => undefined;

/**
 * Creates a key, and whitelists `place` for it. Throws `already_exists` if the name is taken, and `usage` if the rules
 * allow no rank.
 */
export async function createKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { rules = {}, place, by, ...request }: KeyRequest & { place?: { id: number; note?: string }; by: string },
  save = saveNowhere,
): Promise<MintedKey> {
  const ownRules = withRules({}, rules);
  requireReach(ownRules);
  const minted = await mintAndStore(request.mode, save, (secret) => {
    const key = { ...request, ...ownRules, id: newId('key'), secret };
    return store.createKey(key, judgeNewKey(key, { by, at: clock.now() }));
  });
  if (place !== undefined) {
    const { id, note } = place;
    await addPlaces({ store, clock }, { key: minted.key.id, placeIds: [id], note, by });
  }
  return minted;
}

/** Creates a key without a secret, for commands on Discord. Throws the same errors as `createKey`. */
export async function createDiscordKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { rules = {}, by, ...request }: KeyRequest & { by: string },
): Promise<Key> {
  const ownRules = withRules({}, { ...rules, isForDiscord: true });
  requireReach(ownRules);
  const key = { ...request, ...ownRules, id: newId('key') };
  return store.createKey(key, judgeNewKey(key, { by, at: clock.now() }));
}

/**
 * Creates a new secret for a key; the old one is accepted until `oldExpiresAt` (epoch milliseconds). Throws
 * `not_found`, and `conflict` if the key is revoked, expired, declared or for Discord.
 */
export async function rotateKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { key: idOrName, overlapMs, by }: { key: string; overlapMs: number; by: string },
  save = saveNowhere,
): Promise<MintedKey & { oldExpiresAt: number }> {
  const key = await requireKey({ store }, idOrName);
  const state = keyState(key, clock.now());
  if (state === 'revoked' || state === 'expired') {
    throw new RankdError('conflict', `Key "${key.name}" is ${state}; a new secret would not be accepted.`, {
      hint: 'rankd key create NAME',
    });
  }
  const refusal = refusalOfSecret(key);
  if (refusal !== undefined) throw refusal;
  const oldExpiresAt = clock.now() + overlapMs;
  const minted = await mintAndStore(key.mode, save, (secret) =>
    store.updateKey(key.id, judgeRotation({ secret, oldExpiresAt }, { by, at: clock.now() })),
  );
  return { ...minted, oldExpiresAt };
}

async function mintAndStore(
  mode: KeyMode,
  save: SaveSecret,
  store: (stored: ReturnType<typeof mintKey>['stored']) => Promise<Key>,
): Promise<MintedKey> {
  const { secret, stored } = mintKey(mode);
  const removeSecret = save(secret);
  try {
    return { key: await store(stored), secret };
  } catch (error) {
    removeSecret();
    throw error;
  }
}

/** Throws `not_found`, `conflict` if the key can't be changed, and `usage` if the new rules allow no rank. */
export async function setKeyRules(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { key: idOrName, rules, by }: { key: string; rules: KeyRulesChange; by: string },
): Promise<Key> {
  const key = await requireKey({ store }, idOrName);
  requireReach(withRules(key, rules));
  return store.updateKey(key.id, judgeRules(rules, { by, at: clock.now() }));
}

/**
 * Makes a key that was created on a simulated group valid for real groups, too. Throws `not_found`, or `conflict` if
 * such a key is revoked. Leaves other keys unchanged.
 */
export async function adoptKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { key: idOrName, by }: { key: string; by: string },
): Promise<{ key: Key; wasSimulated: boolean }> {
  const key = await requireKey({ store }, idOrName);
  if (!key.isSimulated) return { key, wasSimulated: false };
  return { key: await store.updateKey(key.id, judgeAdoption({ by, at: clock.now() })), wasSimulated: true };
}

/**
 * Revokes a key after `confirm` resolves. Does not call `confirm` for a key that is already revoked. Throws
 * `not_found`, and `conflict` if the configuration declares the key.
 */
export async function revokeKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { key: idOrName, by }: { key: string; by: string },
  confirm: (key: Key) => Promise<void>,
): Promise<{ key: Key; wasRevoked: boolean }> {
  const key = await requireKey({ store }, idOrName);
  const refusal = refusalOfDeclared(`Key "${key.name}"`, key);
  if (refusal !== undefined) throw refusal;
  if (key.revokedAt !== undefined) return { key, wasRevoked: true };
  await confirm(key);
  return { key: await store.updateKey(key.id, judgeRevocation({ by, at: clock.now() })), wasRevoked: false };
}

/** Stops a key from changing ranks until it is resumed. Throws `not_found`, and `conflict` if the key is revoked. */
export async function pauseKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { key: idOrName, by }: { key: string; by: string },
): Promise<{ key: Key; wasPaused: boolean }> {
  const key = await requireKey({ store }, idOrName);
  if (key.pausedAt !== undefined) return { key, wasPaused: true };
  const pause = judgePause({ paused: true, reason: 'by the operator' }, { by, at: clock.now() });
  return { key: await store.updateKey(key.id, pause), wasPaused: false };
}

export async function resumeKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { key: idOrName, by }: { key: string; by: string },
): Promise<{ key: Key; wasPaused: boolean }> {
  const key = await requireKey({ store }, idOrName);
  if (key.pausedAt === undefined) return { key, wasPaused: false };
  const resume = judgePause({ paused: false, reason: 'by the operator' }, { by, at: clock.now() });
  const resumed = await store.updateKey(key.id, resume);
  return { key: resumed, wasPaused: true };
}

/**
 * Lists keys, oldest first, starting after the key `after` (id or name). `next` is the `after` for the next page;
 * `undefined` on the last page. Throws `not_found` if `after` is unknown.
 */
export async function listKeys(
  { store }: Pick<Ports, 'store'>,
  { limit, after }: { limit: number; after?: string },
): Promise<{ keys: Key[]; next: string | undefined }> {
  const from = after === undefined ? {} : { after: (await requireKey({ store }, after)).id };
  const found = await store.listKeys({ ...from, limit: limit + 1 });
  const keys = found.slice(0, limit);
  return { keys, next: found.length > limit ? keys.at(-1)?.id : undefined };
}

export async function isAnyKeyAccepted(
  ports: Pick<Ports, 'store' | 'clock'>,
  group: { title: string },
): Promise<boolean> {
  return (await acceptedKeys(ports, group, { limit: 1 })).length > 0;
}

/** Returns the keys that rankd accepts for the group with this title, including paused ones. */
export function acceptedKeys(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { title }: { title: string },
  { limit }: { limit?: number } = {},
): Promise<Key[]> {
  const ofGroup = isSimulatedGroup(title) ? {} : { isSimulated: false };
  return store.listKeys({ ...ofGroup, acceptedAt: clock.now(), ...(limit !== undefined && { limit }) });
}

export async function pausedKeys(
  ports: Parameters<typeof acceptedKeys>[0] & { group: { title: string } },
): Promise<Key[]> {
  return (await acceptedKeys(ports, ports.group)).filter(({ pausedAt }) => pausedAt !== undefined);
}

/** Returns the keys that rankd refuses for this group only because they were created on a simulated one. */
export async function keysOfSimulation(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { title }: { title: string },
  { limit }: { limit: number },
): Promise<Key[]> {
  if (isSimulatedGroup(title)) return [];
  return store.listKeys({ acceptedAt: clock.now(), isSimulated: true, limit });
}

export async function showKey(
  { store }: Pick<Ports, 'store'>,
  idOrName: string,
): Promise<{ key: Key; entries: WhitelistEntry[] }> {
  const key = await requireKey({ store }, idOrName);
  return { key, entries: await store.listEntries({ keyId: key.id }) };
}

/** Applies a change to a key's rules; null removes a rule. */
export function withRules(before: KeyRules, change: KeyRulesChange): KeyRules {
  const present = Object.entries({ ...before, ...change }).filter(([, value]) => value !== null);
  return Object.fromEntries(present);
}

function requireReach({ minRank = 0, maxRank = 255 }: KeyRules): void {
  if (minRank <= maxRank) return;
  const message = `The floor (--min-rank ${minRank}) is above the ceiling (--max-rank ${maxRank}), so the key could give no rank.`;
  throw new RankdError('usage', message, { hint: 'choose a lower --min-rank or a higher --max-rank' });
}

export async function pausedAmong({ store }: Pick<Ports, 'store'>, ids: readonly string[]): Promise<Set<string>> {
  const keys = ids.length === 0 ? [] : await store.listKeys({ ids });
  const paused = keys.filter(({ pausedAt, revokedAt }) => pausedAt !== undefined && revokedAt === undefined);
  return new Set(paused.map(({ id }) => id));
}

interface UsedKey {
  key: Key;
  entries: WhitelistEntry[];
  changesInDay: number | undefined;
}

/**
 * Lists keys with their places and their change counts for the last day. `ofKeys` holds these counts, keyed by key id;
 * `undefined` if they are unknown.
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
