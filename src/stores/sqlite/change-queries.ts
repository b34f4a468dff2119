import type { RankChange } from '../../core/model.ts';
import type { ChangeFilter, ChangeStore, IdempotencySlot, OpenChange } from '../../ports/index.ts';
import { withoutNulls } from '../row.ts';
import { isOpenChange, mayHaveChanged } from '../where.ts';
import { bindingsOf, conditionsOf } from './change-conditions.ts';
import { type ChangeRow, selectChange, toChange } from './change-row.ts';
import type { Connection } from './engine/connection.ts';
import type { Nodes } from './nodes.ts';

type ChangeQueries = Pick<
  ChangeStore,
  | 'findChange'
  | 'latestChange'
  | 'lastAppliedAt'
  | 'lastWritten'
  | 'lastChangedSomebodyAt'
  | 'listChanges'
  | 'pageChanges'
  | 'countChanges'
  | 'openChanges'
>;

/** Queries of the history. The newest change is the last to arrive (`seq`), whatever the wall clock showed. */
export function changeQueries(db: Connection, nodes: Nodes): ChangeQueries {
  const withHolder = ({ change, node }: Open): OpenChange => ({ change, holder: holderOf(node, nodes) });
  return {
    async findChange(id) {
      return findChange(db, id);
    },

    async latestChange(rankeeId) {
      const { latestId, openId } = standingOf(db, rankeeId);
      const open = openId === undefined ? undefined : findOpen(db, openId); // another process may have ended it meanwhile
      return { ...(latestId !== undefined && { latestId }), ...(open !== undefined && { open: withHolder(open) }) };
    },

    async lastAppliedAt(rankeeId) {
      const row = db.get<{ at: number }>(
        `SELECT finished_at AS at FROM rank_changes ${writtenTo} AND state = 'applied' ORDER BY seq DESC LIMIT 1`,
        { rankeeId },
      );
      return row?.at;
    },

    async lastWritten(rankeeId) {
      const row = db.get<ChangeRow>(
        `${selectChange} ${writtenTo} AND state IN ('applied', 'refused', 'failed') ORDER BY seq DESC LIMIT 1`,
        { rankeeId },
      );
      return row && toChange(row);
    },

    async lastChangedSomebodyAt(rankerId) {
      return lastChangedSomebodyAt(db, rankerId);
    },

    async listChanges(filter) {
      return select(db, filter).map(toChange);
    },

    async pageChanges(filter) {
      const rows = select(db, filter);
      const last = rows.at(-1);
      const isMore = last !== undefined && rows.length === filter.limit;
      return { changes: rows.map(toChange), ...(isMore && { next: String(last.seq) }) };
    },

    async countChanges(since, group) {
      const rows = db.all<{ state: RankChange['state']; count: number }>(
        `SELECT state, count(*) AS count FROM rank_changes
         WHERE requested_at >= @since AND dry_run = 0 AND (@group IS NULL OR group_title = @group) GROUP BY state`,
        { since, group: group ?? null },
      );
      const counts = { pending: 0, applied: 0, refused: 0, failed: 0, unknown: 0 };
      for (const { state, count } of rows) counts[state] = count;
      return counts;
    },

    async openChanges() {
      // Left to itself, the planner reads the whole history in order instead.
      const few = 'INDEXED BY one_open_change_a_member';
      const sql = `${selectChange} ${few} WHERE ${isOpenChange} ORDER BY seq`;
      return db.all<ChangeRow>(sql).map((row) => withHolder(toOpen(row)));
    },
  };
}

/** The change that was asked for with this Idempotency-Key, at `since` (epoch milliseconds) or later. */
export function findByIdempotencyKey(
  db: Connection,
  query: IdempotencySlot & { since: number },
): RankChange | undefined {
  const row = db.get<ChangeRow>(
    `${selectChange} WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group
       AND requested_at >= @since`,
    { ...query },
  );
  return row && toChange(row);
}

/** The changes of a member that may have come to a write. SQLite takes the index only where its condition is repeated word for word. */
const writtenTo = `WHERE rankee_id = @rankeeId AND dry_run = 0 AND (phase = 'compensate' OR roles_before <> roles_after)`;

export function lastChangedSomebodyAt(db: Connection, rankerId: number): number | undefined {
  const row = db.get<{ at: number }>(
    `SELECT coalesce(finished_at, requested_at) AS at FROM rank_changes
     WHERE ranker_id = @rankerId AND ${mayHaveChanged} AND dry_run = 0
       AND roles_before <> roles_after
     ORDER BY seq DESC LIMIT 1`,
    { rankerId },
  );
  return row?.at;
}

function select(db: Connection, filter: ChangeFilter & { cursor?: string | undefined }): ChangeRow[] {
  return db.all(`${selectChange} WHERE ${conditionsOf(filter)} ORDER BY seq DESC LIMIT @limit`, bindingsOf(filter));
}

export function findChange(db: Connection, id: string): RankChange | undefined {
  const row = db.get<ChangeRow>(`${selectChange} WHERE id = @id`, { id });
  return row && toChange(row);
}

/** An open change, and the node that works on it. */
interface Open {
  change: RankChange;
  node: string | undefined;
}

export function findOpen(db: Connection, id: string): Open | undefined {
  const row = db.get<ChangeRow>(`${selectChange} WHERE id = @id AND ${isOpenChange}`, { id });
  return row && toOpen(row);
}

function toOpen(row: ChangeRow): Open {
  return { change: toChange(row), node: row.node ?? undefined };
}

function holderOf(node: string | undefined, nodes: Nodes): OpenChange['holder'] {
  if (node === undefined) return 'none';
  if (node === nodes.idIfBegun) return 'this';
  return nodes.isGone(node) ? 'none' : 'other';
}

/** The ids of a member's newest change and of the open one, in one look. */
export function standingOf(db: Connection, rankeeId: number): { latestId?: string; openId?: string } {
  const row = db.get<{ latestId: string | null; openId: string | null }>(
    `SELECT (SELECT id FROM rank_changes WHERE rankee_id = @rankeeId ORDER BY seq DESC LIMIT 1) AS latestId,
            (SELECT id FROM rank_changes WHERE rankee_id = @rankeeId AND ${isOpenChange}) AS openId`,
    { rankeeId },
  );
  return withoutNulls(row ?? {});
}
