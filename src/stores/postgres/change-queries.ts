import type { RankChange } from '../../core/model.ts';
import type {
  ChangeFilter,
  ChangePage,
  ChangeStore,
  ChangeTally,
  IdempotencySlot,
  OpenChange,
} from '../../ports/index.ts';
import { withoutNulls } from '../row.ts';
import { isDoneBy, isOpenChange, mayHaveChanged, whereOf } from '../where.ts';
import { type ChangeRow, changeFields, selectChange, toChange } from './change-row.ts';
import type { Database, Reader } from './engine/database.ts';
import { hasEnded } from './node-statements.ts';
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
  | 'searchChanges'
  | 'tallyChanges'
  | 'countChanges'
  | 'openChanges'
>;

/** Queries of the history. The newest change is the last to arrive (`seq`), whatever the wall clock showed. */
export function changeQueries(db: Database, nodes: Nodes): ChangeQueries {
  const withHolder = ({ isHeld, ...row }: OpenRow): OpenChange => ({
    change: toChange(row),
    holder: !isHeld ? 'none' : row.node === nodes.idIfBegun ? 'this' : 'other',
  });
  return {
    findChange: (id) => findChange(db, id),

    async latestChange(rankeeId) {
      const [standing, open] = await Promise.all([
        standingOf(db, rankeeId),
        db.get<OpenRow>(`${selectOpen} AND rankee_id = @rankeeId`, { rankeeId }),
      ]);
      const { latestId } = standing;
      return { ...(latestId !== undefined && { latestId }), ...(open !== undefined && { open: withHolder(open) }) };
    },

    async lastAppliedAt(rankeeId) {
      const row = await db.get<{ at: number }>(
        `SELECT finished_at AS at FROM rankd.rank_changes ${writtenTo} AND state = 'applied' ORDER BY seq DESC LIMIT 1`,
        { rankeeId },
      );
      return row?.at;
    },

    async lastWritten(rankeeId) {
      const row = await db.get<ChangeRow>(
        `${selectChange} ${writtenTo} AND state IN ('applied', 'refused', 'failed') ORDER BY seq DESC LIMIT 1`,
        { rankeeId },
      );
      return row && toChange(row);
    },

    lastChangedSomebodyAt: (rankerId) => lastChangedSomebodyAt(db, rankerId),

    async listChanges(filter) {
      return (await select(db, filter)).map(toChange);
    },

    pageChanges: (filter) => page(db, filter),

    async searchChanges(filter) {
      const { cursor, since, until } = filter;
      if (since !== undefined || until !== undefined) return pageByTime(db, filter);
      const isCursor = cursor === undefined || /^\d{1,16}$/.test(cursor); // anybody may send anything
      return isCursor ? page(db, filter) : { changes: [] };
    },

    async tallyChanges(query) {
      const rows = await db.all<{ keyId: string | null } & Omit<ChangeTally, 'keyId'>>(
        `SELECT key_id AS "keyId", state, demotion, state = 'applied' AND roles_before = roles_after AS "isQuiet", count(*) AS count
         FROM rankd.rank_changes
         WHERE requested_at >= @since AND requested_at < @until AND group_title = @group AND NOT dry_run
         GROUP BY 1, 2, 3, 4`,
        query,
      );
      return rows.map(withoutNulls);
    },

    async countChanges(since, group) {
      const rows = await db.all<{ state: RankChange['state']; count: number }>(
        `SELECT state, count(*) AS count FROM rankd.rank_changes
         WHERE requested_at >= @since AND NOT dry_run AND (@group::text IS NULL OR group_title = @group) GROUP BY state`,
        { since, group },
      );
      const counts = { pending: 0, applied: 0, refused: 0, failed: 0, unknown: 0 };
      for (const { state, count } of rows) counts[state] = count;
      return counts;
    },

    async openChanges() {
      return (await db.all<OpenRow>(`${selectOpen} ORDER BY seq`)).map(withHolder);
    },
  };
}

/** An open change. `isHeld`: by a node that has not ended. */
type OpenRow = ChangeRow & { isHeld: boolean };

export const isHeld = `(node IS NOT NULL AND NOT ${hasEnded('node')})`;

const selectOpen = `SELECT ${isHeld} AS "isHeld", ${changeFields} FROM rankd.rank_changes WHERE ${isOpenChange}`;

/** The changes of a member that may have come to a write. */
const writtenTo =
  "WHERE rankee_id = @rankeeId AND NOT dry_run AND (phase = 'compensate' OR roles_before <> roles_after)";

export async function lastChangedSomebodyAt(db: Reader, rankerId: number): Promise<number | undefined> {
  const row = await db.get<{ at: number }>(
    `SELECT coalesce(finished_at, requested_at) AS at FROM rankd.rank_changes
     WHERE ranker_id = @rankerId AND ${mayHaveChanged} AND NOT dry_run
       AND roles_before <> roles_after
     ORDER BY seq DESC LIMIT 1`,
    { rankerId },
  );
  return row?.at;
}

/** Matches the beginning of a name; an unescaped underscore would match any character. */
const begunByName = "replace(lower(@rankeeName), '_', '\\_') || '%'";

/** The condition for each part of a filter. */
const conditions = {
  group: 'group_title = @group',
  ids: 'id = ANY(@ids)',
  rankeeId: 'rankee_id = @rankeeId',
  rankeeName: `(lower(rankee_name) LIKE ${begunByName} OR rankee_id = ANY (ARRAY
    (SELECT user_id FROM rankd.user_names WHERE lower(name) LIKE ${begunByName})))`,
  rankerId: 'ranker_id = @rankerId',
  keyId: 'key_id = @keyId',
  placeId: 'place_id = @placeId',
  by: isDoneBy,
  undoId: 'undo_id = @undoId',
  states: 'state = ANY(@states)',
  since: 'requested_at >= @since',
  until: 'requested_at < @until',
  cursor: 'seq < @cursor',
} as const satisfies Record<Exclude<keyof PageFilter, 'limit'>, string>;

type PageFilter = ChangeFilter & { cursor?: string | undefined };

async function page(db: Reader, filter: PageFilter): Promise<ChangePage> {
  const rows = await select(db, filter);
  const last = rows.at(-1);
  const isMore = last !== undefined && rows.length === filter.limit;
  return { changes: rows.map(toChange), ...(isMore && { next: String(last.seq) }) };
}

/** Newest first by the time at which they were asked for, which is not the order of arrival if a clock was set back. */
async function pageByTime(db: Reader, { cursor, ...filter }: PageFilter): Promise<ChangePage> {
  const [, at, seq] = /^(\d{1,15})\.(\d{1,16})$/.exec(cursor ?? '') ?? [];
  if (cursor !== undefined && seq === undefined) return { changes: [] };
  const behind = seq === undefined ? '' : 'AND (requested_at, seq) < (@at, @seq)';
  const rows = await db.all<ChangeRow>(
    `${selectChange} WHERE ${whereOf(conditions, filter)} ${behind} ORDER BY requested_at DESC, seq DESC LIMIT @limit`,
    { ...filter, ...(seq !== undefined && { at: Number(at), seq: Number(seq) }) },
  );
  const last = rows.at(-1);
  const isMore = last !== undefined && rows.length === filter.limit;
  return { changes: rows.map(toChange), ...(isMore && { next: `${last.requestedAt}.${last.seq}` }) };
}

function select(db: Reader, filter: PageFilter): Promise<ChangeRow[]> {
  return db.all<ChangeRow>(`${selectChange} WHERE ${whereOf(conditions, filter)} ORDER BY seq DESC LIMIT @limit`, {
    ...filter,
  });
}

export async function findChange(db: Reader, id: string): Promise<RankChange | undefined> {
  const row = await db.get<ChangeRow>(`${selectChange} WHERE id = @id`, { id });
  return row && toChange(row);
}

/** The change that an Idempotency-Key stands for since a time (epoch milliseconds). */
export async function findByIdempotencyKey(
  db: Reader,
  slot: IdempotencySlot & { since: number },
): Promise<RankChange | undefined> {
  const row = await db.get<ChangeRow>(
    `${selectChange} WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group
       AND requested_at >= @since`,
    { ...slot },
  );
  return row && toChange(row);
}

/** The ids of a member's newest change and of the open one, in one look. */
export async function standingOf(db: Reader, rankeeId: number): Promise<{ latestId?: string; openId?: string }> {
  const row = await db.get<{ latestId: string | null; openId: string | null }>(
    `SELECT (SELECT id FROM rankd.rank_changes WHERE rankee_id = @rankeeId ORDER BY seq DESC LIMIT 1) AS "latestId",
            (SELECT id FROM rankd.rank_changes WHERE rankee_id = @rankeeId AND ${isOpenChange}) AS "openId"`,
    { rankeeId },
  );
  return withoutNulls(row ?? {});
}
