import { RankdError } from '../../base/errors.ts';
import { isoTime } from '../../base/time.ts';
import type { Key, Place, WhitelistEntry } from '../../core/model.ts';
import { judgeActive, judgeAdding, judgeRemoval } from '../../core/whitelist.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import { chooseKey, requireKey } from '../keys/find-key.ts';

type StoreAndClock = Pick<Ports, 'store' | 'clock'>;

/** Places on the whitelist of a key (id or name). The default is the only accepted key. */
export interface PlacesCommand {
  key: string | undefined;
  placeIds: number[];
  by: string;
}

/** The result for each place, in the order of the given ids. */
export interface ChangedPlaces<Entry extends WhitelistEntry = WhitelistEntry> {
  key: Key;
  entries: Entry[];
}

type AddedEntry = WhitelistEntry & { outcome: 'added' | 're-enabled' | 'already there' };

/** All places of an experience. Throws `not_found` if it has none, and the platform's errors. */
export async function placesOf(
  { platform }: Pick<Ports, 'platform'>,
  universeId: number,
  call: CallContext,
): Promise<Place[]> {
  const places = await platform.placesOf(universeId, call);
  if (places.length > 0) return places;
  throw new RankdError('not_found', `Experience ${universeId} has no place that Roblox lists.`, {
    hint: 'rankd whitelist add PLACE',
  });
}

/** Adds all of the places, or none. Throws `conflict` if the key is revoked, and like `chooseKey`. */
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
 * Enables or disables all of the places, or none. Throws `not_found` if a place is not on the whitelist, and like
 * `chooseKey`.
 */
export async function setPlacesActive(
  { store, clock }: StoreAndClock,
  { key: idOrName, placeIds, active, by }: PlacesCommand & { active: boolean },
): Promise<ChangedPlaces> {
  const key = await chooseKey({ store, clock }, idOrName);
  const places = { keyId: key.id, keyName: key.name, placeIds, active };
  return { key, entries: (await store.updateEntries(places, judgeActive(places, { by, at: clock.now() }))).after };
}

/** Removes all of the places, or none; with `ifExists`, only those on the whitelist. Throws like `setPlacesActive`. */
export async function removePlaces(
  { store, clock }: StoreAndClock,
  { key: idOrName, placeIds, by, ifExists = false }: PlacesCommand & { ifExists?: boolean },
): Promise<ChangedPlaces> {
  const key = await chooseKey({ store, clock }, idOrName);
  const places = { keyId: key.id, keyName: key.name, placeIds, ifExists };
  return { key, entries: (await store.updateEntries(places, judgeRemoval(places, { by, at: clock.now() }))).before };
}

/** The places of one key (id or name), or of every key that is not revoked. Throws `not_found` for a key that does not exist. */
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
  isAllowed: boolean;
}

/** Checks a key for a place. Throws like `chooseKey`. */
export async function checkPlace(
  { store, clock }: StoreAndClock,
  { key: idOrName, placeId }: { key: string | undefined; placeId: number },
): Promise<PlaceVerdict> {
  const key = await chooseKey({ store, clock }, idOrName);
  const entry = (await store.listEntries({ keyId: key.id })).find((one) => one.placeId === placeId);
  return { key, entry, isAllowed: entry?.active === true };
}

function refuseRevoked({ name, revokedAt }: Key): void {
  if (revokedAt === undefined) return;
  throw new RankdError('conflict', `Key "${name}" is revoked; a whitelist is of no use to it.`, {
    hint: 'rankd key create NAME',
  });
}

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
