import { RankdError } from '../../base/errors.ts';
import { isoTime } from '../../base/time.ts';
import { refusalOf } from '../../core/access.ts';
import type { Key, Place, Scope, WhitelistEntry } from '../../core/model.ts';
import { judgeActive, judgeAdding, judgeRemoval } from '../../core/whitelist.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import { chooseKey, requireKey } from '../keys/find-key.ts';

type StoreAndClock = Pick<Ports, 'store' | 'clock'>;

/** Places on a key's whitelist. `key` is an id or a name; if `undefined`, the only accepted game key is used. */
export interface PlacesCommand {
  key: string | undefined;
  placeIds: number[];
  by: string;
}

/** The entries of the places, in the order of the requested ids. */
export interface ChangedPlaces<Entry extends WhitelistEntry = WhitelistEntry> {
  key: Key;
  entries: Entry[];
}

type AddedEntry = WhitelistEntry & { outcome: 'added' | 're-enabled' | 'already there' };

/** Returns all places in an experience. Throws `not_found` if Roblox lists none, and the platform's errors. */
export async function placesOf(
  { platform }: Pick<Ports, 'platform'>,
  universeId: number,
  call: CallContext,
): Promise<Place[]> {
  const places = await platform.placesOf(universeId, call);
  if (places.length > 0) return places;
  throw new RankdError('not_found', `Roblox lists no places for experience ${universeId}.`, {
    hint: 'rankd whitelist add PLACE',
  });
}

/**
 * Adds either all of the places or none. Throws `conflict` if the key is revoked or a note would change a declared
 * entry, and the same errors as `chooseKey`.
 */
export async function addPlaces(
  { store, clock }: StoreAndClock,
  { key: idOrName, placeIds, note, by }: PlacesCommand & { note?: string | undefined },
): Promise<ChangedPlaces<AddedEntry>> {
  const key = await chooseKey({ store, clock }, idOrName);
  refuseRevoked(key);
  const places = { keyId: key.id, placeIds, note };
  const { before, after } = await store.updateEntries(places, judgeAdding(places, { by, at: clock.now() }));
  const outcomeOf = ({ placeId }: WhitelistEntry) => {
    const known = before.find((entry) => entry.placeId === placeId);
    if (known === undefined) return 'added';
    return known.active ? 'already there' : 're-enabled';
  };
  return { key, entries: after.map((entry) => ({ ...entry, outcome: outcomeOf(entry) })) };
}

/**
 * Enables or disables either all of the places or none. Throws `not_found` if a place is not on the whitelist,
 * `conflict` if the configuration declares its entry, and the same errors as `chooseKey`.
 */
export async function setPlacesActive(
  { store, clock }: StoreAndClock,
  { key: idOrName, placeIds, active, by }: PlacesCommand & { active: boolean },
): Promise<ChangedPlaces> {
  const key = await chooseKey({ store, clock }, idOrName);
  const places = { keyId: key.id, keyName: key.name, placeIds, active };
  return { key, entries: (await store.updateEntries(places, judgeActive(places, { by, at: clock.now() }))).after };
}

/**
 * Removes either all of the places or none. With `ifExists`, skips places that are not on the whitelist. Throws the
 * same errors as `setPlacesActive`.
 */
export async function removePlaces(
  { store, clock }: StoreAndClock,
  { key: idOrName, placeIds, by, ifExists = false }: PlacesCommand & { ifExists?: boolean },
): Promise<ChangedPlaces> {
  const key = await chooseKey({ store, clock }, idOrName);
  const places = { keyId: key.id, keyName: key.name, placeIds, ifExists };
  return { key, entries: (await store.updateEntries(places, judgeRemoval(places, { by, at: clock.now() }))).before };
}

/** Lists the places of one key (an id or a name), or of every unrevoked key. Throws `not_found` for an unknown key. */
export async function listPlaces(
  { store }: Pick<Ports, 'store'>,
  { key: idOrName }: { key: string | undefined },
): Promise<Array<{ key: Key; entry: WhitelistEntry }>> {
  const keys =
    idOrName === undefined
      ? (await store.listKeys()).filter(({ revokedAt }) => revokedAt === undefined)
      : [await requireKey({ store }, idOrName)];
  const lists = keys.map(async (key) => (await store.listEntries({ keyId: key.id })).map((entry) => ({ key, entry })));
  return (await Promise.all(lists)).flat();
}

interface PlaceVerdict {
  key: Key;
  /** `undefined` if the place is not on the key's whitelist. */
  entry: WhitelistEntry | undefined;
  /** The reason that games can't use the key from the place; `undefined` if they can. */
  refusal: RankdError | undefined;
}

/**
 * Checks whether games can use a key from a place. Throws `conflict` if the key is for Discord, and the same errors as
 * `chooseKey`.
 */
export async function checkPlace(
  { store, clock }: StoreAndClock,
  { key: idOrName, placeId }: { key: string | undefined; placeId: number },
): Promise<PlaceVerdict> {
  const key = await chooseKey({ store, clock }, idOrName);
  if (key.isForDiscord) {
    throw new RankdError('conflict', `Key "${key.name}" is for Discord, so no game can use it.`, {
      hint: 'name a key for a game with --key',
    });
  }
  const [workspace, entries] = await Promise.all([store.getWorkspace(), store.listEntries({ keyId: key.id })]);
  const entry = entries.find((one) => one.placeId === placeId);
  // not `verify` if the key has another scope, because even a paused key can verify
  const scope: Scope = key.scopes.find((one) => one !== 'verify') ?? 'verify';
  const question = { scope, placeId, group: undefined, now: clock.now() };
  return { key, entry, refusal: refusalOf({ key, workspace, entry }, question) };
}

function refuseRevoked({ name, revokedAt }: Key): void {
  if (revokedAt === undefined) return;
  throw new RankdError('conflict', `Key "${name}" is revoked, so places cannot be added to its whitelist.`, {
    hint: 'rankd key create NAME',
  });
}

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

export function placeVerdictDocument({ key, entry, refusal }: PlaceVerdict) {
  return { allowed: refusal === undefined, entry: entry === undefined ? null : entryDocument(key, entry) };
}

export function changedEntryDocument(key: Key, entry: WhitelistEntry & { outcome: string }) {
  return { ...entryDocument(key, entry), outcome: entry.outcome };
}
