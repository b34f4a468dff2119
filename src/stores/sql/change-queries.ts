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
  | 'searchChanges'
  | 'tallyChanges'
  | 'countChanges'
  | 'openChanges'
>;

/**
 * Returns the history queries. Except for a search by time, they treat the change with the highest `seq` as the newest,
 * not the one with the latest time, because the wall clock can jump.
 */
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
      const { openId, ...latest } = await latestAndOpenOf(db, rankeeId);
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

    searchChanges: (filter) => searchChanges(db, filter),

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

/** An open change. `isHeld` is true if a live node holds it. */
type OpenRow = ChangeRow & { isHeld: boolean | number };

export function isHeld({ hasEnded }: Dialect): string {
  return `(node IS NOT NULL AND NOT ${hasEnded('node')})`;
}

/**
 * Matches a member's changes that rankd has, or may have, written to the platform. Must repeat the condition of the
 * `written_to_a_member` index verbatim, because SQLite would not use the index otherwise.
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
 * Reads a page in reverse order of insertion. Prevents SQLite from using the time index, because it would then have to
 * sort the whole period for each page.
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
  const hasMore = last !== undefined && rows.length === filter.limit;
  return { changes: rows.map(toChange), ...(hasMore && { next: String(last.seq) }) };
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

export async function latestAndOpenOf(db: Reader, rankeeId: number): Promise<{ latestId?: string; openId?: string }> {
  const row = await db.get<{ latestId: string | null; openId: string | null }>(selectLatestAndOpen(db.sql), {
    rankeeId,
  });
  return withoutNulls(row ?? {});
}

const selectLatestAndOpen = perEngine(
  ({ schema }) => `
  SELECT (SELECT id FROM ${schema}.rank_changes WHERE rankee_id = @rankeeId ORDER BY seq DESC LIMIT 1) AS "latestId",
         (SELECT id FROM ${schema}.rank_changes WHERE rankee_id = @rankeeId AND ${isOpenChange}) AS "openId"`,
);

/**
 * A sort order for the history. A search starts at the newest change and reads one range of `column` at a time, so that
 * each page reads few rows.
 */
interface Order {
  column: 'seq' | 'requested_at';
  /**
   * Returns the lower end of the range below `at` that contains about `count` changes. Can return `undefined` if fewer
   * are left.
   */
  rangeEnd(db: Reader, range: { at: number; count: number }): Promise<number | undefined>;
  /** Matches the changes after the cursor `@at`, `@seq`. */
  afterCursor: string;
  orderBy: string;
  conditions(sql: Dialect): Readonly<Record<keyof Condition, string>>;
}

type Condition = Omit<ChangeFilter, 'limit' | 'since' | 'until'>;

const byArrival: Order = {
  ...{ column: 'seq', afterCursor: 'seq < @at', orderBy: 'seq DESC' },
  rangeEnd: async (_db, { at, count }) => at - count,
  conditions: conditionsOf,
};

/**
 * Prevents SQLite from using the indexes on keys, places and rankers, because it would then sort all matches again for
 * each range.
 */
const byTime: Order = {
  ...{ column: 'requested_at', orderBy: 'requested_at DESC, seq DESC' },
  async rangeEnd(db, range) {
    const found = await db.get<{ at: number }>(
      `SELECT requested_at AS at FROM ${db.sql.schema}.rank_changes WHERE requested_at < @at ORDER BY requested_at DESC LIMIT 1 OFFSET @count`,
      range,
    );
    return found?.at;
  },
  afterCursor: 'requested_at <= @at AND (requested_at < @at OR seq < @seq)',
  conditions: (sql) => ({
    ...conditionsOf(sql),
    keyId: `${sql.unindexed('key_id')} = @keyId`,
    placeId: `${sql.unindexed('place_id')} = @placeId`,
    rankerId: `${sql.unindexed('ranker_id')} = @rankerId`,
  }),
};

/**
 * A page reads at most two ranges, of these sizes. The first is enough for common changes; the second finds rare ones
 * within a few pages.
 */
const rangeSizes = [5_000, 20_000];

/** The end of a page. `seq` is 0 if the page stops at the end of a range instead of at a change. */
interface Cursor {
  at: number;
  seq: number;
}

/**
 * Implements `ChangeStore.searchChanges`. Reads only a limited range of changes for each page, so any page can have
 * fewer than `limit`, not only the last.
 */
async function searchChanges(
  db: Reader,
  { cursor: given, since, until, ...filter }: ChangeFilter & { cursor?: string | undefined },
): Promise<ChangePage> {
  const order = since === undefined && until === undefined ? byArrival : byTime;
  const cursor = given === undefined ? undefined : parseCursor(given, order);
  if (given !== undefined && cursor === undefined) return { changes: [] };
  const ends = await endsOf(db, order);
  if (ends === undefined) return { changes: [] };
  const start = { at: until ?? ends.newest + 1, seq: 0 };
  return searchPage(db, { order, filter, from: cursor ?? start, oldest: Math.max(since ?? 0, ends.oldest) });
}

async function searchPage(
  db: Reader,
  {
    order,
    filter,
    from,
    oldest,
  }: { order: Order; filter: Condition & { limit: number }; from: Cursor; oldest: number },
): Promise<ChangePage> {
  const { column, afterCursor, orderBy } = order;
  const where = whereOf(order.conditions(db.sql), filter);
  const sql = `${selectChange(db.sql)} WHERE ${column} >= @low AND ${afterCursor} AND ${where} ORDER BY ${orderBy} LIMIT @limit`;
  const rows: ChangeRow[] = [];
  let [at, seq] = [from.at, from.seq];
  for (const count of rangeSizes) {
    const low = Math.max(oldest, (await order.rangeEnd(db, { at, count })) ?? oldest);
    rows.push(...(await db.all<ChangeRow>(sql, { ...filter, limit: filter.limit - rows.length, low, at, seq })));
    const last = rows.at(-1);
    if (last !== undefined && rows.length >= filter.limit) {
      const next = cursorOf(order, { at: order === byTime ? last.requestedAt : last.seq, seq: last.seq });
      return { changes: rows.map(toChange), next };
    }
    if (low <= oldest) return { changes: rows.map(toChange) };
    [at, seq] = [low, 0];
  }
  return { changes: rows.map(toChange), next: cursorOf(order, { at, seq }) };
}

async function endsOf(db: Reader, { column }: Order): Promise<{ newest: number; oldest: number } | undefined> {
  const changes = `FROM ${db.sql.schema}.rank_changes`;
  const row = await db.get<{ newest: number | null; oldest: number | null }>(
    `SELECT (SELECT max(${column}) ${changes}) AS newest, (SELECT min(${column}) ${changes}) AS oldest`,
  );
  return row === undefined || row.newest === null || row.oldest === null
    ? undefined
    : { newest: row.newest, oldest: row.oldest };
}

function cursorOf(order: Order, { at, seq }: Cursor): string {
  return order === byTime ? `${at}.${seq}` : String(at);
}

/** Returns `undefined` for an invalid cursor, because callers can send anything. */
function parseCursor(text: string, order: Order): Cursor | undefined {
  const pattern = order === byTime ? /^(\d{1,15})\.(\d{1,16})$/ : /^(\d{1,15})$/;
  const [, at, seq = '0'] = pattern.exec(text) ?? [];
  return at === undefined ? undefined : { at: Number(at), seq: Number(seq) };
}
