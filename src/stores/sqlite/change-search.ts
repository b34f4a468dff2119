import type { ChangeFilter, ChangePage, ChangeStore, ChangeTally } from '../../ports/index.ts';
import { withoutNulls } from '../row.ts';
import { bindingsOf, conditionsOf } from './change-conditions.ts';
import { type ChangeRow, selectChange, toChange } from './change-row.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';
import type { Bindings } from './engine/statements.ts';

/** At most this many rows are read for a page: bench/measures/search.ts measures how long that takes. */
const maxLooked = 5_000;
/** The rows of an index scan are counted up to this number, to choose among scans. */
const maxCounted = 2_000;
/** More members with such names are not read one by one. */
const maxNames = 300;
/** The number of rows in each read, until the page is full. */
const chunkRows = 200;

/**
 * A way to what is searched for: rows that an index gives in order, newest first. Each stream is one stretch of that index, and all of
 * them together hold everything that is searched for.
 */
interface Way {
  name: string;
  index: string | undefined;
  streams: Array<{ condition: string; bindings: Bindings }>;
}

/** Where a page ends, and on which way: others must not take another one in between. */
interface Cursor {
  way: string;
  /** 0 if no time is asked for. */
  at: number;
  seq: number;
}

/** The search for a person who waits, and the counts of a stretch of time. */
export function changeSearch(db: Connection): Pick<ChangeStore, 'searchChanges' | 'tallyChanges'> {
  return {
    async searchChanges({ cursor: given, ...filter }) {
      const cursor = given === undefined ? undefined : parseCursor(given);
      if (given !== undefined && cursor === undefined) return { changes: [] };
      const ways = waysTo(db, filter);
      // A way can be closed by then: there are too many names. The time's way or the whole history is in the same order.
      const sameOrder = isByTime(filter) ? ways[0] : ways.at(-1);
      const way =
        cursor === undefined ? shortest(db, ways) : (ways.find(({ name }) => name === cursor.way) ?? sameOrder);
      return way === undefined ? { changes: [] } : pageOn(db, { way, filter, cursor });
    },

    async tallyChanges(query) {
      const rows = db.all<RowOf<ChangeTally>>(
        `SELECT key_id AS keyId, state, demotion, state = 'applied' AND roles_before = roles_after AS isQuiet, count(*) AS count
         FROM rank_changes INDEXED BY changes_by_time
         WHERE requested_at >= @since AND requested_at < @until AND group_title = @group AND dry_run = 0
         GROUP BY 1, 2, 3, 4`,
        query,
      );
      return rows.map(({ demotion, isQuiet, ...row }) => ({
        ...{ ...withoutNulls(row), demotion: demotion === 1, isQuiet: isQuiet === 1 },
      }));
    },
  };
}

/** Every way on which this can be found. The last one is the whole history. */
function waysTo(db: Connection, filter: ChangeFilter): Way[] {
  const { rankeeId, rankeeName, rankerId, keyId, placeId, undoId, by, states, since, until } = filter;
  const one = (name: string, index: string, condition: string, bindings: Bindings): Way => ({
    ...{ name, index, streams: [{ condition, bindings }] },
  });
  const ways: Array<Way | undefined> = [
    since === undefined && until === undefined ? undefined : timeWay(filter),
    rankeeId === undefined ? undefined : one('member', 'changes_of_a_member', 'rankee_id = @rankeeId', { rankeeId }),
    rankeeName === undefined ? undefined : nameWay(db, rankeeName),
    undoId === undefined ? undefined : one('undo', 'changes_of_an_undo', 'undo_id = @undoId', { undoId }),
    rankerId === undefined ? undefined : one('ranker', 'changes_asked_by', 'ranker_id = @rankerId', { rankerId }),
    keyId === undefined ? undefined : one('key', 'changes_by_a_key', 'key_id = @keyId', { keyId }),
    placeId === undefined ? undefined : one('place', 'changes_at_a_place', 'place_id = @placeId', { placeId }),
    by === undefined || /^key(:|$)/.test(by) ? undefined : one('by', 'changes_by_a_key', 'key_id IS NULL', {}),
    states === undefined || states.includes('applied')
      ? undefined
      : {
          ...{ name: 'state', index: 'changes_not_applied' },
          streams: states.map((state) => ({ condition: `state = @state AND state <> 'applied'`, bindings: { state } })),
        },
  ];
  const all: Way = { name: 'all', index: undefined, streams: [{ condition: 'TRUE', bindings: {} }] };
  return [...ways.filter((way) => way !== undefined), all];
}

function timeWay({ since = 0, until = Number.MAX_SAFE_INTEGER }: ChangeFilter): Way {
  const condition = 'requested_at >= @since AND requested_at < @until';
  return { name: 'time', index: 'changes_by_time', streams: [{ condition, bindings: { since, until } }] };
}

/** Each name that begins so, by one step in the index, and each member whose name of today does. `undefined` if there are too many. */
function nameWay(db: Connection, beginning: string): Way | undefined {
  const start = beginning.toLowerCase();
  const names: string[] = [];
  const next = (relation: '>' | '>=', after: string) =>
    db.get<{ name: string }>(
      `SELECT rankee_name AS name FROM rank_changes INDEXED BY changes_by_member_name
       WHERE rankee_name COLLATE NOCASE ${relation} @after ORDER BY rankee_name COLLATE NOCASE LIMIT 1`,
      { after },
    )?.name;
  for (let name = next('>=', beginning); name?.toLowerCase().startsWith(start); name = next('>', name)) {
    names.push(name);
    if (names.length > maxNames) return undefined;
  }
  const ids = db.all<{ id: number }>(
    `SELECT user_id AS id FROM user_names WHERE substr(name, 1, length(@beginning)) COLLATE NOCASE = @beginning LIMIT @limit`,
    { beginning, limit: maxNames + 1 },
  );
  if (ids.length > maxNames) return undefined;
  return {
    ...{ name: 'name', index: undefined },
    streams: [
      ...names.map((name) => ({ condition: 'rankee_name COLLATE NOCASE = @name', bindings: { name } })),
      ...ids.map(({ id }) => ({ condition: 'rankee_id = @rankeeId', bindings: { rankeeId: id } })),
    ],
  };
}

/** Where a time is asked for, each way is in its order: one with fewer rows than are counted is sorted, and the time's own way comes sorted. */
function isByTime({ since, until }: ChangeFilter): boolean {
  return since !== undefined || until !== undefined;
}

/** The way with the fewest rows. Names come as they are: to count all their streams takes as long as to read them. */
function shortest(db: Connection, ways: Way[]): Way | undefined {
  const named = ways.find(({ name }) => name === 'name');
  if (named !== undefined || ways.length <= 2) return named ?? ways[0];
  const counted = ways.slice(0, -1).map((way) => ({ way, rows: rowsOf(db, way) }));
  return counted.reduce((best, one) => (one.rows < best.rows ? one : best)).way;
}

function rowsOf(db: Connection, way: Way): number {
  const counts = way.streams.map(({ condition, bindings }) => {
    const sql = `SELECT count(*) AS rows FROM (SELECT 1 FROM rank_changes ${indexedBy(way)} WHERE ${condition} LIMIT @maxCounted)`;
    return db.get<{ rows: number }>(sql, { ...bindings, maxCounted })?.rows ?? 0;
  });
  return counts.reduce((sum, rows) => sum + rows, 0);
}

function pageOn(
  db: Connection,
  { way, filter, cursor }: { way: Way; filter: ChangeFilter; cursor: Cursor | undefined },
): ChangePage {
  const { candidates, end } = candidatesOn(db, { way, filter, cursor });
  const found: ChangeRow[] = [];
  for (let from = 0; from < candidates.length && found.length < filter.limit; from += chunkRows)
    found.push(...selected(db, candidates.slice(from, from + chunkRows), filter));
  const rows = found.slice(0, filter.limit);
  const last = rows.length === filter.limit ? rows.at(-1) : undefined;
  const next = last === undefined ? end : { seq: last.seq, at: last.requestedAt };
  const changes = rows.map(toChange);
  return next === undefined ? { changes } : { changes, next: `${way.name}.${next.at}.${next.seq}` };
}

type Candidate = Pick<Cursor, 'seq' | 'at'>;

/** The newest rows of all streams, in order; `end` is the last one if there may be more behind it. */
function candidatesOn(
  db: Connection,
  { way, filter, cursor }: { way: Way; filter: ChangeFilter; cursor: Cursor | undefined },
): { candidates: Candidate[]; end: Candidate | undefined } {
  const byTime = isByTime(filter);
  const limit = Math.ceil(maxLooked / Math.max(1, way.streams.length));
  const behind = cursor && (byTime ? 'requested_at <= @at AND (requested_at < @at OR seq < @seq)' : 'seq < @seq');
  const order = byTime ? 'requested_at DESC, seq DESC' : 'seq DESC';
  const streams = way.streams.map(({ condition, bindings }) =>
    db.all<Candidate>(
      `SELECT seq, ${byTime ? 'requested_at' : '0'} AS at FROM rank_changes ${indexedBy(way)}
       WHERE ${condition}${behind === undefined ? '' : ` AND ${behind}`} ORDER BY ${order} LIMIT @limit`,
      { ...bindings, ...(cursor && { seq: cursor.seq, at: cursor.at }), limit },
    ),
  );
  const newestFirst = (one: Candidate, other: Candidate) => other.at - one.at || other.seq - one.seq;
  // Rows beyond the end of a truncated stream may be out of order.
  const [end] = streams
    .filter(({ length }) => length === limit)
    .flatMap((rows) => rows.at(-1) ?? [])
    .sort(newestFirst);
  const known = streams.flat().filter((one) => end === undefined || newestFirst(one, end) <= 0);
  const candidates = [...new Map(known.map((one) => [one.seq, one])).values()].sort(newestFirst);
  return { candidates, end };
}

function indexedBy({ index }: Way): string {
  return index === undefined ? '' : `INDEXED BY ${index}`;
}

/** Those of these rows that are searched for, in the same order. */
function selected(db: Connection, candidates: Candidate[], filter: ChangeFilter): ChangeRow[] {
  const rows = db.all<ChangeRow>(
    `${selectChange} WHERE seq IN (SELECT value FROM json_each(@seqs)) AND ${conditionsOf(filter)}`,
    { ...bindingsOf(filter), seqs: JSON.stringify(candidates.map(({ seq }) => seq)) },
  );
  const bySeq = new Map(rows.map((row) => [row.seq, row]));
  return candidates.flatMap(({ seq }) => bySeq.get(seq) ?? []);
}

/** Callers may send anything. */
function parseCursor(text: string): Cursor | undefined {
  const [, way, at, seq] = /^([a-z]{2,6})\.(\d{1,16})\.(\d{1,16})$/.exec(text) ?? [];
  return way === undefined ? undefined : { way, at: Number(at), seq: Number(seq) };
}
