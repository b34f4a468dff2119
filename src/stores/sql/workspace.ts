import { RankdError } from '../../base/errors.ts';
import { newId } from '../../core/api-key.ts';
import type { WhitelistEntry, Workspace } from '../../core/model.ts';
import type { Clock, WhitelistStore, WorkspaceStore } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import type { Bindings, Database, Dialect, Reader } from './database.ts';
import { requireKey } from './keys.ts';
import { allowed, type RowOf, withoutNulls } from './rows.ts';

export function workspaceStore(db: Database): WorkspaceStore {
  return {
    async getWorkspace() {
      return readWorkspace(db);
    },

    async adoptWorkspaceId(id) {
      const { schema } = db.sql;
      return db.write(async (transaction) => {
        const isUnknown = `NOT EXISTS (SELECT 1 FROM ${schema}.keys)`;
        transaction.run(`UPDATE ${schema}.workspace SET id = @id WHERE id <> @id AND ${isUnknown}`, { id });
        return readWorkspace(transaction);
      });
    },

    async updateWorkspace(judge) {
      return db.write(async (transaction) => {
        const { change, events } = allowed(judge(await readWorkspace(transaction)));
        const { active, plan } = change;
        transaction.run(`UPDATE ${db.sql.schema}.workspace SET active = @active, plan = @plan`, { active, plan });
        await appendEvents(transaction, events);
        return readWorkspace(transaction);
      });
    },
  };
}

/** Returns the statement that creates a new database's only workspace. */
export function newWorkspace({ schema }: Dialect, clock: Pick<Clock, 'now'>): [sql: string, bindings: Bindings] {
  return [
    `INSERT INTO ${schema}.workspace (one_row, id, name, plan, active, created_at)
     VALUES (true, @id, 'default', 'top', true, @createdAt)`,
    { id: newId('ws'), createdAt: clock.now() },
  ];
}

async function readWorkspace(db: Reader): Promise<Workspace> {
  const query = `SELECT id, name, plan, active, created_at AS "createdAt" FROM ${db.sql.schema}.workspace`;
  const row = await db.get<RowOf<Workspace>>(query);
  if (row !== undefined) return { ...row, active: Boolean(row.active) };
  throw new RankdError('store_unavailable', "rankd's database has lost its workspace.", {
    hint: 'stop every daemon, then restore a backup',
  });
}

export function whitelistStore(db: Database): WhitelistStore {
  const { schema, anyOf, byBytes } = db.sql;
  return {
    async listEntries({ keyId }) {
      const where = keyId === undefined ? 'TRUE' : 'key_id = @keyId';
      return entriesWhere(db, `${where} ORDER BY place_id, ${byBytes('key_id')}`, { keyId });
    },

    async updateEntries({ keyId, placeIds }, judge) {
      return db.write(async (transaction) => {
        const [found] = await Promise.all([
          entriesWhere(transaction, `key_id = @keyId AND ${anyOf('place_id', '@placeIds')}`, { keyId, placeIds }),
          requireKey(transaction, keyId, 0),
        ]);
        const byPlace = new Map(found.map((entry) => [entry.placeId, entry]));
        const before = [...new Set(placeIds)].flatMap((placeId) => byPlace.get(placeId) ?? []);
        const { change, events } = allowed(judge(before));
        for (const entry of change.put) transaction.run(putEntry(schema), { ...entry });
        for (const placeId of change.remove)
          transaction.run(`DELETE FROM ${schema}.whitelist WHERE key_id = @keyId AND place_id = @placeId`, {
            keyId,
            placeId,
          });
        await appendEvents(transaction, events);
        return { before, after: change.put };
      });
    },
  };
}

function putEntry(schema: string): string {
  return `
    INSERT INTO ${schema}.whitelist (key_id, place_id, active, note, added_at, declared_in)
    VALUES (@keyId, @placeId, @active, @note, @addedAt, @declaredIn)
    ON CONFLICT (key_id, place_id) DO UPDATE SET active = excluded.active, note = excluded.note`;
}

async function entriesWhere(db: Reader, where: string, bindings: Bindings): Promise<WhitelistEntry[]> {
  const rows = await db.all<RowOf<WhitelistEntry>>(
    `SELECT key_id AS "keyId", place_id AS "placeId", active, note, added_at AS "addedAt", declared_in AS "declaredIn"
     FROM ${db.sql.schema}.whitelist WHERE ${where}`,
    bindings,
  );
  return rows.map((row) => ({ ...withoutNulls(row), active: Boolean(row.active) }));
}
