import type { ChangeFilter, ChangePage, ChangeStore } from '../../ports/index.ts';
import { conditionsOf } from './change-queries.ts';
import { type ChangeRow, selectChange, toChange } from './change-row.ts';
import type { Database, Dialect, Reader } from './database.ts';
import { whereOf } from './rows.ts';

/**
 * An order of the history. A search reads it from the newest change on, in ranges of a column, so that each page reads
 * few rows.
 */
interface Order {
  column: 'seq' | 'requested_at';
  /** Returns the lower end of a range of at most `count` changes below `at`, or `undefined` if there are fewer. */
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

/** Uses the index of times: with any other index, the engine would sort all matches again for each range. */
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
 * A page reads at most two ranges of these sizes: the first suffices for common changes, the second finds rare ones in
 * few pages.
 */
const rangeSizes = [5_000, 20_000];

/** The end of a page. `seq` is 0 if the page ends with a range instead of a change. */
interface Cursor {
  at: number;
  seq: number;
}

export function changeSearch(db: Database): Pick<ChangeStore, 'searchChanges'> {
  return {
    async searchChanges({ cursor: given, since, until, ...filter }) {
      const order = since === undefined && until === undefined ? byArrival : byTime;
      const cursor = given === undefined ? undefined : parseCursor(given, order);
      if (given !== undefined && cursor === undefined) return { changes: [] };
      const ends = await endsOf(db, order);
      if (ends === undefined) return { changes: [] };
      const start = { at: until ?? ends.newest + 1, seq: 0 };
      return page(db, { order, filter, from: cursor ?? start, oldest: Math.max(since ?? 0, ends.oldest) });
    },
  };
}

async function page(
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
