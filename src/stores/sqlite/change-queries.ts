import type { RankChange } from '../../core/model.ts';
import type { ChangeStore } from '../../ports.ts';
import { type ChangeRow, selectChange, toChange } from './change-row.ts';
import type { Connection } from './connection.ts';

type ChangeQueries = Pick<
  ChangeStore,
  | 'findChange'
  | 'findChangeByIdempotencyKey'
  | 'latestChange'
  | 'lastAppliedAt'
  | 'lastChangedSomebodyAt'
  | 'listChanges'
  | 'openChanges'
>;

/** What the history can be asked. Newest is what arrived last (`seq`), whatever the wall clock said. */
export function changeQueries(db: Connection): ChangeQueries {
  return {
    async findChange(id) {
      return findChange(db, id);
    },

    async findChangeByIdempotencyKey({ keyId, idempotencyKey, since }) {
      const row = db.get<ChangeRow>(
        `${selectChange} WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND requested_at >= @since`,
        { keyId, idempotencyKey, since },
      );
      return row && toChange(row);
    },

    async latestChange(rankeeId) {
      return db.read(() => {
        const latestId = latestChangeId(db, rankeeId);
        const open = openChange(db, rankeeId);
        return { ...(latestId !== undefined && { latestId }), ...(open !== undefined && { open }) };
      });
    },

    async lastAppliedAt(rankeeId) {
      const row = db.get<{ at: number | null }>(
        `SELECT max(finished_at) AS at FROM rank_changes
         WHERE rankee_id = @rankeeId AND state = 'applied' AND dry_run = 0 AND roles_before <> roles_after`,
        { rankeeId },
      );
      return row?.at ?? undefined;
    },

    async lastChangedSomebodyAt(rankerId) {
      return lastChangedSomebodyAt(db, rankerId);
    },

    async listChanges({ rankeeId, keyId, states, limit }) {
      const conditions = [
        ...(rankeeId === undefined ? [] : ['rankee_id = @rankeeId']),
        ...(keyId === undefined ? [] : ['key_id = @keyId']),
        ...(states === undefined ? [] : ['state IN (SELECT value FROM json_each(@states))']),
      ];
      const rows = db.all<ChangeRow>(
        `${selectChange} WHERE ${conditions.join(' AND ') || 'TRUE'} ORDER BY seq DESC LIMIT @limit`,
        { rankeeId, keyId, states: JSON.stringify(states), limit },
      );
      return rows.map(toChange);
    },

    async openChanges() {
      // Left to itself, the planner reads the whole history in order instead.
      const few = 'INDEXED BY one_open_change_a_member';
      const sql = `${selectChange} ${few} WHERE state IN ('pending', 'unknown') ORDER BY seq`;
      return db.all<ChangeRow>(sql).map(toChange);
    },
  };
}

export function lastChangedSomebodyAt(db: Connection, rankerId: number): number | undefined {
  const row = db.get<{ at: number }>(
    `SELECT coalesce(finished_at, requested_at) AS at FROM rank_changes
     WHERE ranker_id = @rankerId AND state IN ('pending', 'applied', 'unknown') AND dry_run = 0
       AND roles_before <> roles_after
     ORDER BY seq DESC LIMIT 1`,
    { rankerId },
  );
  return row?.at;
}

export function findChange(db: Connection, id: string): RankChange | undefined {
  const row = db.get<ChangeRow>(`${selectChange} WHERE id = @id`, { id });
  return row && toChange(row);
}

export function latestChangeId(db: Connection, rankeeId: number): string | undefined {
  const sql = 'SELECT id FROM rank_changes WHERE rankee_id = @rankeeId ORDER BY seq DESC LIMIT 1';
  return db.get<{ id: string }>(sql, { rankeeId })?.id;
}

export function openChange(db: Connection, rankeeId: number): RankChange | undefined {
  const sql = `${selectChange} WHERE rankee_id = @rankeeId AND state IN ('pending', 'unknown')`;
  const row = db.get<ChangeRow>(sql, { rankeeId });
  return row && toChange(row);
}
