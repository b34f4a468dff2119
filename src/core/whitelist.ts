import { RankdError } from '../base/errors.ts';
import { withoutKeys } from './api-key.ts';
import { refusalOfDeclared } from './declarations.ts';
import { type Actor, placeEvent, type Verdict } from './events.ts';
import type { WhitelistEntry } from './model.ts';

export interface WhitelistEdit {
  put: WhitelistEntry[];
  remove: number[];
}

export type JudgeEntries = (entries: readonly WhitelistEntry[]) => Verdict<WhitelistEdit>;

interface Places {
  keyId: string;
  placeIds: readonly number[];
}

interface NamedPlaces extends Places {
  keyName: string;
}

/**
 * Judges a request to add places. A place that is already on the whitelist is enabled, and a given note replaces its
 * note.
 */
export function judgeAdding(
  { keyId, placeIds, note }: Places & { note?: string | undefined },
  actor: Actor,
): JudgeEntries {
  const kept = note && withoutKeys(note);
  return (entries) => {
    const before = new Map(entries.map((entry) => [entry.placeId, entry]));
    const refusal = note === undefined ? undefined : firstRefusal(entries);
    if (refusal !== undefined) return { refusal };
    const places = [...new Set(placeIds)];
    const put = places.map((placeId): WhitelistEntry => {
      const entry = before.get(placeId) ?? { keyId, placeId, note: '', addedAt: actor.at };
      return { ...entry, active: true, ...(kept !== undefined && { note: kept }) };
    });
    const events = places.map((placeId) =>
      placeEvent('add', placeId, { keyId, note: kept, added: !before.has(placeId) }, actor),
    );
    return { change: { put, remove: [] }, events };
  };
}

/** Judges a request to enable or disable places. Refuses all of them if one can't be changed. */
export function judgeActive({ active, ...places }: NamedPlaces & { active: boolean }, actor: Actor): JudgeEntries {
  const { keyId } = places;
  return (entries) => {
    const refusal = refusalOfMissing(places, entries) ?? firstRefusal(entries);
    if (refusal !== undefined) return { refusal };
    const what = active ? 'enable' : 'disable';
    const events = entries.map(({ placeId }) => placeEvent(what, placeId, { keyId }, actor));
    return { change: { put: entries.map((entry) => ({ ...entry, active })), remove: [] }, events };
  };
}

/**
 * Judges a request to remove places. Refuses all of them if one can't be removed. `ifExists`: skips places that are not
 * on the whitelist.
 */
export function judgeRemoval(
  { ifExists = false, ...places }: NamedPlaces & { ifExists?: boolean },
  actor: Actor,
): JudgeEntries {
  const { keyId } = places;
  return (entries) => {
    const missing = ifExists ? undefined : refusalOfMissing(places, entries);
    const refusal = missing ?? firstRefusal(entries);
    if (refusal !== undefined) return { refusal };
    const events = entries.map(({ placeId, note }) => placeEvent('remove', placeId, { keyId, note }, actor));
    return { change: { put: [], remove: entries.map(({ placeId }) => placeId) }, events };
  };
}

function firstRefusal(entries: readonly WhitelistEntry[]): RankdError | undefined {
  const declared = entries.find(({ declaredIn }) => declaredIn !== undefined);
  return declared && refusalOfDeclared(`Place ${declared.placeId}`, declared);
}

function refusalOfMissing(
  { keyName, placeIds }: NamedPlaces,
  entries: readonly WhitelistEntry[],
): RankdError | undefined {
  const found = new Set(entries.map(({ placeId }) => placeId));
  const missing = [...new Set(placeIds)].filter((placeId) => !found.has(placeId));
  if (missing.length === 0) return undefined;
  const which = missing.length === 1 ? `Place ${missing[0]} is` : `Places ${someOf(missing)} are`;
  return new RankdError('not_found', `${which} not on the whitelist of key "${keyName}".`, {
    hint: `\`rankd whitelist list --key ${keyName}\` lists its places`,
  });
}

const maxNamed = 20;

/** Lists at most `maxNamed` places, because a request can name a hundred thousand. */
function someOf(placeIds: number[]): string {
  const named = placeIds.slice(0, maxNamed).join(', ');
  return placeIds.length <= maxNamed ? named : `${named} and ${placeIds.length - maxNamed} more`;
}
