import type { WhitelistEntry } from '../../core/model.ts';
import type { WhitelistStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { withoutNulls } from '../row.ts';
import { appendEvents } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';
import { requireKey } from './keys.ts';

export function whitelistStore(db: Connection): WhitelistStore {
  return {
    async listEntries({ keyId }) {
      const where = keyId === undefined ? '' : 'WHERE key_id = @keyId';
      return db.all<EntryRow>(`${selectEntry} ${where} ORDER BY place_id, key_id`, { keyId }).map(toEntry);
    },

    async updateEntries({ keyId, placeIds }, judge) {
      return db.write(() => {
        requireKey(db, keyId, 0);
        const before = [...new Set(placeIds)].flatMap((placeId) => findEntry(db, keyId, placeId) ?? []);
        const { change, events } = allowed(judge(before));
        for (const entry of change.put) db.run(putEntry, { declaredIn: null, ...entry, active: Number(entry.active) });
        for (const placeId of change.remove)
          db.run('DELETE FROM whitelist WHERE key_id = @keyId AND place_id = @placeId', { keyId, placeId });
        appendEvents(db, events);
        return { before, after: change.put };
      });
    },
  };
}

const putEntry = `
  INSERT INTO whitelist (key_id, place_id, active, note, added_at, declared_in)
  VALUES (@keyId, @placeId, @active, @note, @addedAt, @declaredIn)
  ON CONFLICT DO UPDATE SET active = @active, note = @note`;

type EntryRow = RowOf<WhitelistEntry>;

const selectEntry = `
  SELECT key_id AS keyId, place_id AS placeId, active, note, added_at AS addedAt, declared_in AS declaredIn
  FROM whitelist`;

function findEntry(db: Connection, keyId: string, placeId: number): WhitelistEntry | undefined {
  const row = db.get<EntryRow>(`${selectEntry} WHERE key_id = @keyId AND place_id = @placeId`, { keyId, placeId });
  return row && toEntry(row);
}

function toEntry(row: EntryRow): WhitelistEntry {
  return { ...withoutNulls(row), active: row.active === 1 };
}
