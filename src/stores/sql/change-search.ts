import type { ChangeFilter, ChangePage, ChangeStore } from '../../ports/index.ts';
import { conditionsOf } from './change-queries.ts';
import { type ChangeRow, selectChange, toChange } from './change-row.ts';
import type { Database, Dialect, Reader } from './database.ts';
import { whereOf } from './rows.ts';

/** An order of the history. It is read from the newest change on, in stretches of a column, so that no page reads too much. */
interface Order {
  along: 'seq' | 'requested_at';
  /** The lower end of a stretch of at most `count` changes below `at`; `undefined` if there are fewer. */
  endOf(db: Reader, stretch: { at: number; count: number }): Promise<number | undefined>;
  /** The condition of a change that comes after the cursor `@at`, `@seq`. */
  behind: string;
  by: string;
  conditions(sql: Dialect): Readonly<Record<keyof Condition, string>>;
}

type Condition = Omit<ChangeFilter, 'limit' | 'since' | 'until'>;

const byArrival: Order = {
  ...{ along: 'seq', behind: 'seq < @at', by: 'seq DESC' },
  endOf: async (_db, { at, count }) => at - count,
  conditions: conditionsOf,
};

/** Reads the index of times: any other would be read as a whole, and sorted, for each stretch. */
const byTime: Order = {
  ...{ along: 'requested_at', by: 'requested_at DESC, seq DESC' },
  async endOf(db, stretch) {
    const found = await db.get<{ at: number }>(
      `SELECT requested_at AS at FROM ${db.sql.schema}.rank_changes WHERE requested_at < @at ORDER BY requested_at DESC LIMIT 1 OFFSET @count`,
      stretch,
    );
    return found?.at;
  },
  behind: 'requested_at <= @at AND (requested_at < @at OR seq < @seq)',
  conditions: (sql) => ({
    ...conditionsOf(sql),
    keyId: `${sql.unindexed('key_id')} = @keyId`,
    placeId: `${sql.unindexed('place_id')} = @placeId`,
    rankerId: `${sql.unindexed('ranker_id')} = @rankerId`,
  }),
};

/**
 * The maximum number of changes that a page reads, in two stretches: the first is enough for common changes, and both together find rare
 * ones in few pages.
 */
const stretches = [5_000, 20_000];

/** The end of a page: everything that comes after is older. Without a change that ends it, `seq` is 0. */
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
  const { along, behind, by } = order;
  const where = whereOf(order.conditions(db.sql), filter);
  const sql = `${selectChange(db.sql)} WHERE ${along} >= @low AND ${behind} AND ${where} ORDER BY ${by} LIMIT @limit`;
  const rows: ChangeRow[] = [];
  let [at, seq] = [from.at, from.seq];
  for (const count of stretches) {
    const low = Math.max(oldest, (await order.endOf(db, { at, count })) ?? oldest);
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

async function endsOf(db: Reader, { along }: Order): Promise<{ newest: number; oldest: number } | undefined> {
  const changes = `FROM ${db.sql.schema}.rank_changes`;
  const row = await db.get<{ newest: number | null; oldest: number | null }>(
    `SELECT (SELECT max(${along}) ${changes}) AS newest, (SELECT min(${along}) ${changes}) AS oldest`,
  );
  return row === undefined || row.newest === null || row.oldest === null
    ? undefined
    : { newest: row.newest, oldest: row.oldest };
}

function cursorOf(order: Order, { at, seq }: Cursor): string {
  return order === byTime ? `${at}.${seq}` : String(at);
}

/** Any caller may send anything. */
function parseCursor(text: string, order: Order): Cursor | undefined {
  const pattern = order === byTime ? /^(\d{1,15})\.(\d{1,16})$/ : /^(\d{1,15})$/;
  const [, at, seq = '0'] = pattern.exec(text) ?? [];
  return at === undefined ? undefined : { at: Number(at), seq: Number(seq) };
}
