import { RankdError } from '../../base/errors.ts';
import { refuseDeclared } from '../../core/declared.ts';
import type { WhitelistEntry } from '../../core/model.ts';
import type { Clock, WhitelistStore } from '../../ports/index.ts';
import { appendEvent } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import { type RowOf, withoutNulls } from './engine/row.ts';
import { requireKey } from './keys.ts';

export function whitelistStore(db: Connection, clock: Pick<Clock, 'now'>): WhitelistStore {
  return {
    async addEntries({ keyId, placeIds, note }, by) {
      const now = clock.now();
      return db.write(() => {
        requireKey(db, keyId, now);
        return unique(placeIds).map((placeId) => {
          const before = findEntry(db, keyId, placeId);
          const added = before === undefined;
          if (before !== undefined && note !== undefined) refuseDeclared(`Place ${placeId}`, before);
          db.run(
            `INSERT INTO whitelist (key_id, place_id, active, note, added_at)
             VALUES (@keyId, @placeId, 1, coalesce(@note, ''), @now)
             ON CONFLICT DO UPDATE SET active = 1, note = coalesce(@note, note)`,
            { keyId, placeId, note, now },
          );
          const detail = { keyId, note, added };
          appendEvent(db, { at: now, by, action: 'whitelist.add', subject: String(placeId), detail });
          return { ...requireEntry(db, keyId, placeId), added };
        });
      });
    },

    async listEntries({ keyId }) {
      const where = keyId === undefined ? '' : 'WHERE key_id = @keyId';
      return db.all<EntryRow>(`${selectEntry} ${where} ORDER BY place_id, key_id`, { keyId }).map(toEntry);
    },

    async setEntriesActive({ keyId, placeIds, active }, by) {
      const action = active ? 'whitelist.enable' : 'whitelist.disable';
      return db.write(() => {
        requireOwnEntries(db, keyId, placeIds);
        return unique(placeIds).map((placeId) => {
          db.run('UPDATE whitelist SET active = @active WHERE key_id = @keyId AND place_id = @placeId', {
            keyId,
            placeId,
            active: Number(active),
          });
          appendEvent(db, { at: clock.now(), by, action, subject: String(placeId), detail: { keyId } });
          return requireEntry(db, keyId, placeId);
        });
      });
    },

    async removeEntries({ keyId, placeIds }, by) {
      return db.write(() => {
        const entries = requireOwnEntries(db, keyId, placeIds);
        for (const { placeId, note } of entries) {
          db.run('DELETE FROM whitelist WHERE key_id = @keyId AND place_id = @placeId', { keyId, placeId });
          const event = { at: clock.now(), by, action: 'whitelist.remove', subject: String(placeId) };
          appendEvent(db, { ...event, detail: { keyId, note } });
        }
        return entries;
      });
    },
  };
}

type EntryRow = RowOf<WhitelistEntry>;

const selectEntry = `
  SELECT key_id AS keyId, place_id AS placeId, active, note, added_at AS addedAt, declared_in AS declaredIn
  FROM whitelist`;

export function findEntry(db: Connection, keyId: string, placeId: number): WhitelistEntry | undefined {
  const row = db.get<EntryRow>(`${selectEntry} WHERE key_id = @keyId AND place_id = @placeId`, { keyId, placeId });
  return row && toEntry(row);
}

/** The entries of all these places. Throws `not_found` with every place that has none, `conflict` where one is declared. */
function requireOwnEntries(db: Connection, keyId: string, placeIds: number[]): WhitelistEntry[] {
  const places = unique(placeIds);
  const entries = places.flatMap((placeId) => findEntry(db, keyId, placeId) ?? []);
  const found = new Set(entries.map((entry) => entry.placeId));
  const missing = places.filter((placeId) => !found.has(placeId));
  if (missing.length > 0) throw notListed(keyId, missing);
  for (const entry of entries) refuseDeclared(`Place ${entry.placeId}`, entry);
  return entries;
}

function requireEntry(db: Connection, keyId: string, placeId: number): WhitelistEntry {
  const entry = findEntry(db, keyId, placeId);
  if (entry === undefined) throw notListed(keyId, [placeId]);
  return entry;
}

function notListed(keyId: string, placeIds: number[]): RankdError {
  const which = placeIds.length === 1 ? `Place ${placeIds[0]} is` : `Places ${someOf(placeIds)} are`;
  return new RankdError('not_found', `${which} not on the whitelist of key ${keyId}.`, {
    hint: `\`rankd whitelist list --key ${keyId}\` shows the places that are`,
  });
}

/** A list of a hundred thousand is no message. */
function someOf(placeIds: number[]): string {
  const named = placeIds.slice(0, maxNamed).join(', ');
  return placeIds.length <= maxNamed ? named : `${named} and ${placeIds.length - maxNamed} more`;
}

const maxNamed = 20;

function toEntry(row: EntryRow): WhitelistEntry {
  return { ...withoutNulls(row), active: row.active === 1 };
}

function unique(placeIds: number[]): number[] {
  return [...new Set(placeIds)];
}
