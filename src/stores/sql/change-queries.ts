import type { RankChange } from '../../core/model.ts';
import type {
  ChangeFilter,
  ChangePage,
  ChangeStore,
  ChangeTally,
  IdempotencySlot,
  OpenChange,
} from '../../ports/index.ts';
import { type ChangeRow, changeFields, selectChange, toChange } from './change-row.ts';
import type { Database, Dialect, OwnNode, Reader } from './database.ts';
import { isDoneBy, isOpenChange, mayHaveChanged, perEngine, type RowOf, whereOf, withoutNulls } from './rows.ts';

type ChangeQueries = Pick<
  ChangeStore,
  | 'findChange'
  | 'latestChange'
  | 'lastAppliedAt'
  | 'lastWritten'
  | 'lastRankedOthersAt'
  | 'listChanges'
  | 'pageChanges'
  | 'tallyChanges'
  | 'countChanges'
  | 'openChanges'
>;

/** Queries of the history. The newest change is the last to arrive (`seq`), because the wall clock can jump. */
export function changeQueries(db: Database, node: Pick<OwnNode, 'idIfBegun'>): ChangeQueries {
  const { schema } = db.sql;
  const withHolder = ({ isHeld, ...row }: OpenRow): OpenChange => ({
    change: toChange(row),
    holder: !isHeld ? 'none' : row.node === node.idIfBegun ? 'this' : 'other',
  });
  const selectOpen = `SELECT ${isHeld(db.sql)} AS "isHeld", ${changeFields} FROM ${schema}.rank_changes WHERE ${isOpenChange}`;
  const selectOpenOf = `${selectOpen} AND rankee_id = @rankeeId`;
  const selectLastWritten = `${selectChange(db.sql)} ${writtenTo} AND state IN ('applied', 'refused', 'failed') ORDER BY seq DESC LIMIT 1`;
  return {
    findChange: (id) => findChange(db, id),

    async latestChange(rankeeId) {
      const { openId, ...latest } = await standingOf(db, rankeeId);
      const open = openId === undefined ? undefined : await db.get<OpenRow>(selectOpenOf, { rankeeId });
      return { ...latest, ...(open !== undefined && { open: withHolder(open) }) };
    },

    async lastAppliedAt(rankeeId) {
      const row = await db.get<{ at: number }>(
        `SELECT finished_at AS at FROM ${schema}.rank_changes ${writtenTo} AND state = 'applied' ORDER BY seq DESC LIMIT 1`,
        { rankeeId },
      );
      return row?.at;
    },

    async lastWritten(rankeeId) {
      const row = await db.get<ChangeRow>(selectLastWritten, { rankeeId });
      return row && toChange(row);
    },

    lastRankedOthersAt: (rankerId) => lastRankedOthersAt(db, rankerId),

    async listChanges(filter) {
      return (await pageOf(db, filter)).changes;
    },

    pageChanges: (filter) => pageOf(db, filter),

    async tallyChanges(query) {
      const rows = await db.all<RowOf<ChangeTally>>(
        `SELECT key_id AS "keyId", state, demotion, count(*) AS count,
           state = 'applied' AND (kind IS NOT NULL OR roles_before = roles_after OR old_role_id = role_id) AS "isQuiet"
         FROM ${schema}.rank_changes
         WHERE requested_at >= @since AND requested_at < @until AND group_title = @group AND NOT dry_run
         GROUP BY 1, 2, 3, 5`,
        query,
      );
      return rows.map(({ demotion, isQuiet, ...row }) => ({
        ...{ ...withoutNulls(row), demotion: Boolean(demotion), isQuiet: Boolean(isQuiet) },
      }));
    },

    async countChanges(since, group) {
      const rows = await db.all<{ state: RankChange['state']; count: number }>(
        `SELECT state, count(*) AS count FROM ${schema}.rank_changes
         WHERE requested_at >= @since AND NOT dry_run ${group === undefined ? '' : 'AND group_title = @group'} GROUP BY state`,
        { since, group },
      );
      const counts = { pending: 0, applied: 0, refused: 0, failed: 0, unknown: 0 };
      for (const { state, count } of rows) counts[state] = count;
      return counts;
    },

    async openChanges() {
      const rows = await db.all<OpenRow>(selectOpen); // with ORDER BY, SQLite would scan the whole history
      return rows.sort((one, other) => one.seq - other.seq).map(withHolder);
    },
  };
}

/** An open change. `isHeld`: its holder has not ended. */
type OpenRow = ChangeRow & { isHeld: boolean | number };

export function isHeld({ hasEnded }: Dialect): string {
  return `(node IS NOT NULL AND NOT ${hasEnded('node')})`;
}

/**
 * Matches a member's changes that may have been written. SQLite uses a partial index only if its condition is repeated
 * word for word.
 */
const writtenTo =
  "WHERE rankee_id = @rankeeId AND NOT dry_run AND (phase = 'compensate' OR roles_before <> roles_after)";

export async function lastRankedOthersAt(db: Reader, rankerId: number): Promise<number | undefined> {
  return (await db.get<{ at: number }>(selectRankedOthersAt(db.sql), { rankerId }))?.at;
}

const selectRankedOthersAt = perEngine(
  ({ schema }) => `
  SELECT coalesce(finished_at, requested_at) AS at FROM ${schema}.rank_changes
  WHERE ranker_id = @rankerId AND ${mayHaveChanged} AND NOT dry_run AND roles_before <> roles_after
  ORDER BY seq DESC LIMIT 1`,
);

/** The SQL condition for each field of a filter. */
export function conditionsOf({ schema, anyOf, anyIn, startsWith }: Dialect) {
  const named = `SELECT user_id FROM ${schema}.user_names WHERE ${startsWith('name', '@rankeeName')}`;
  return {
    group: 'group_title = @group',
    ids: anyOf('id', '@ids'),
    rankeeId: 'rankee_id = @rankeeId',
    rankeeName: `(${startsWith('rankee_name', '@rankeeName')} OR ${anyIn('rankee_id', named)})`,
    rankerId: 'ranker_id = @rankerId',
    keyId: 'key_id = @keyId',
    placeId: 'place_id = @placeId',
    by: isDoneBy,
    undoId: 'undo_id = @undoId',
    states: anyOf('state', '@states'),
    since: 'requested_at >= @since',
    until: 'requested_at < @until',
  } as const satisfies Record<Exclude<keyof ChangeFilter, 'limit'>, string>;
}

/**
 * Reads a page in order of arrival, without the index of times: with it, the engine would sort the whole period for
 * each page.
 */
async function pageOf(db: Reader, filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage> {
  const at = db.sql.unindexed('requested_at');
  const conditions = {
    ...conditionsOf(db.sql),
    since: `${at} >= @since`,
    until: `${at} < @until`,
    cursor: 'seq < @cursor',
  };
  const { cursor, ...rest } = filter;
  const rows = await db.all<ChangeRow>(
    `${selectChange(db.sql)} WHERE ${whereOf(conditions, filter)} ORDER BY seq DESC LIMIT @limit`,
    { ...rest, cursor: Number(cursor) },
  );
  const last = rows.at(-1);
  const isMore = last !== undefined && rows.length === filter.limit;
  return { changes: rows.map(toChange), ...(isMore && { next: String(last.seq) }) };
}

export async function findChange(db: Reader, id: string): Promise<RankChange | undefined> {
  const row = await db.get<ChangeRow>(`${selectChange(db.sql)} WHERE id = @id`, { id });
  return row && toChange(row);
}

/** Returns the change that was requested with this Idempotency-Key at `since` (epoch milliseconds) or later. */
export async function findByIdempotencyKey(
  db: Reader,
  slot: IdempotencySlot & { since: number },
): Promise<RankChange | undefined> {
  const row = await db.get<ChangeRow>(
    `${selectChange(db.sql)} WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group
       AND requested_at >= @since`,
    { ...slot },
  );
  return row && toChange(row);
}

/** Returns the ids of a member's newest change and open change, in one read. */
export async function standingOf(db: Reader, rankeeId: number): Promise<{ latestId?: string; openId?: string }> {
  const row = await db.get<{ latestId: string | null; openId: string | null }>(selectStanding(db.sql), { rankeeId });
  return withoutNulls(row ?? {});
}

const selectStanding = perEngine(
  ({ schema }) => `
  SELECT (SELECT id FROM ${schema}.rank_changes WHERE rankee_id = @rankeeId ORDER BY seq DESC LIMIT 1) AS "latestId",
         (SELECT id FROM ${schema}.rank_changes WHERE rankee_id = @rankeeId AND ${isOpenChange}) AS "openId"`,
);
