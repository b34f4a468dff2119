import type { WhitelistEntry } from '../../core/model.ts';
import type { WhitelistStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { withoutNulls } from '../row.ts';
import { appendEvents } from './audit.ts';
import type { Database, Reader } from './engine/database.ts';
import type { Bindings } from './engine/statement.ts';
import type { Nullable } from './key-row.ts';
import { requireKey } from './keys.ts';

export function whitelistStore(db: Database): WhitelistStore {
  return {
    async listEntries({ keyId }) {
      const where = keyId === undefined ? 'true' : 'key_id = @keyId';
      return entriesWhere(db, `${where} ORDER BY place_id, key_id COLLATE "C"`, { keyId });
    },

    async updateEntries({ keyId, placeIds }, judge) {
      return db.write(async (transaction) => {
        const [found] = await Promise.all([
          entriesWhere(transaction, 'key_id = @keyId AND place_id = ANY(@placeIds)', { keyId, placeIds }),
          requireKey(transaction, keyId, 0),
        ]);
        const before = [...new Set(placeIds)].flatMap((id) => found.find(({ placeId }) => placeId === id) ?? []);
        const { change, events } = allowed(judge(before));
        for (const entry of change.put) transaction.run(putEntry, { ...entry });
        for (const placeId of change.remove)
          transaction.run('DELETE FROM rankd.whitelist WHERE key_id = @keyId AND place_id = @placeId', {
            keyId,
            placeId,
          });
        await appendEvents(transaction, events);
        return { before, after: change.put };
      });
    },
  };
}

const putEntry = `
  INSERT INTO rankd.whitelist (key_id, place_id, active, note, added_at, declared_in)
  VALUES (@keyId, @placeId, @active, @note, @addedAt, @declaredIn)
  ON CONFLICT (key_id, place_id) DO UPDATE SET active = excluded.active, note = excluded.note`;

async function entriesWhere(db: Reader, where: string, bindings: Bindings): Promise<WhitelistEntry[]> {
  const rows = await db.all<Nullable<WhitelistEntry>>(
    `SELECT key_id AS "keyId", place_id AS "placeId", active, note, added_at AS "addedAt", declared_in AS "declaredIn"
     FROM rankd.whitelist WHERE ${where}`,
    bindings,
  );
  return rows.map(withoutNulls);
}
