import type { Hash } from 'node:crypto';
import { RankdError } from '../base/errors.ts';
import { crypto } from '../base/node-modules.ts';
import { counted } from '../base/text.ts';
import { type ChainLink, chainStart, linkHash } from '../core/audit.ts';
import type { CopiedContents, StoreContents, StoredRow } from '../ports/index.ts';

/**
 * The tables to copy, with their key columns, in an order in which every table follows the tables that it references.
 */
export const copiedTables: Readonly<Record<string, readonly string[]>> = {
  workspace: ['one_row'],
  keys: ['seq'],
  key_secrets: ['seq'],
  secret_uses: ['secret_seq'],
  whitelist: ['key_id', 'place_id'],
  rank_changes: ['seq'],
  holds: ['seq'],
  audit_anchor: ['one_row'],
  audit_events: ['id'],
  audit_people: ['event_id', 'field'],
  base_roles: ['group_title'],
  served_group: ['one_row'],
  group_roles: ['group_title', 'role_id'],
  role_meanings: ['group_title', 'setting', 'entry'],
  user_names: ['user_id'],
  discord_people: ['discord_id'],
  erasure_requests: ['id'],
  webhooks: ['seq'],
  webhook_deliveries: ['webhook_id', 'sequence'],
};

/** Columns that are not copied, because they are only meaningful in the original database. */
const localColumns: Readonly<Record<string, readonly string[]>> = {
  rank_changes: ['node', 'takeovers'],
};

const pageRows = 1_000;

/**
 * Yields a table's rows in pages, in key order. `source` is the table's name in SQL, and `asKey` returns the SQL
 * expression for sorting and comparing a key column.
 */
export async function* pagesOf(
  table: string,
  {
    source,
    asKey = (column) => column,
    query,
  }: {
    source: string;
    asKey?: (column: string) => string;
    query(sql: string, after: Record<string, unknown>): StoredRow[] | Promise<StoredRow[]>;
  },
): AsyncGenerator<StoredRow[]> {
  const key = copiedTables[table] ?? [];
  const order = key.map(asKey).join(', ');
  const afterLast = `WHERE (${order}) > (${key.map((column) => `@${column}`).join(', ')})`;
  let last: StoredRow | undefined;
  for (;;) {
    const after = Object.fromEntries(key.map((column) => [column, last?.[column] ?? null]));
    const rows = await query(
      `SELECT * FROM ${source} ${last === undefined ? '' : afterLast} ORDER BY ${order} LIMIT ${pageRows}`,
      last === undefined ? {} : after,
    );
    last = rows.at(-1);
    if (last !== undefined) yield rows.map((row) => withoutColumns(row, localColumns[table] ?? []));
    if (rows.length < pageRows) return;
  }
}

function withoutColumns(row: StoredRow, columns: readonly string[]): StoredRow {
  return Object.fromEntries(Object.entries(row).filter(([column]) => !columns.includes(column)));
}

/** The target of a copy. Its tables must be empty. */
export interface CopyTarget {
  insert(table: string, rows: readonly StoredRow[]): Promise<void>;
  /** Stores the highest row number of each table, and the head of the audit chain. */
  finish(numbers: ReadonlyMap<string, number>, head: ChainLink): Promise<void>;
  contents: StoreContents;
}

/**
 * Copies all rows, then reads them back. Throws `store_unavailable` if the copy differs from the source, and `conflict`
 * if the source's audit chain is broken.
 */
export async function copyContents(from: StoreContents, to: CopyTarget): Promise<CopiedContents> {
  const sent = new Map<string, TableSum>();
  const chain = new Chain();
  for (const table of Object.keys(copiedTables)) {
    const sum = new TableSum();
    for await (const rows of from.rows(table)) {
      sum.add(rows);
      chain.follow(table, rows);
      await to.insert(table, rows);
    }
    sent.set(table, sum);
  }
  const numbers = await from.numbers();
  chain.end(numbers.get('audit_events') ?? 0);
  await to.finish(numbers, chain.head);
  const copiedNumbers = await to.contents.numbers();
  for (const [table, sum] of sent) {
    const copied = new TableSum();
    for await (const rows of to.contents.rows(table)) copied.add(rows);
    const isBehind = (copiedNumbers.get(table) ?? 0) < (numbers.get(table) ?? 0);
    if (copied.count !== sum.count || copied.digest !== sum.digest || isBehind)
      throw differs(table, sum.count, copied.count);
  }
  return { tables: new Map([...sent].map(([table, { count }]) => [table, count])), head: chain.head };
}

class TableSum {
  count = 0;
  readonly #hash: Hash = crypto().createHash('sha256');
  #digest: string | undefined;

  add(rows: readonly StoredRow[]): void {
    this.count += rows.length;
    for (const row of rows) {
      const cells = Object.keys(row)
        .sort()
        .map((column) => [column, row[column] instanceof Uint8Array ? hexOf(row[column]) : row[column]]);
      this.#hash.update(JSON.stringify(cells));
    }
  }

  get digest(): string {
    this.#digest ??= this.#hash.digest('hex');
    return this.#digest;
  }
}

/** Verifies the audit chain as its rows are copied. */
class Chain {
  head: ChainLink = chainStart;

  follow(table: string, rows: readonly StoredRow[]): void {
    for (const row of rows) {
      if (table === 'audit_anchor') this.head = { id: Number(row['last_id']), hash: hexOf(row['hash']) };
      if (table === 'audit_events') this.#add(row);
    }
  }

  end(newestId: number): void {
    if (newestId > this.head.id) throw broken(this.head.id + 1);
  }

  #add(row: StoredRow): void {
    const { id, at, done_by: by, action, subject, detail } = row as unknown as AuditColumns;
    const hash = hexOf(row['hash']);
    const isNext = id === this.head.id + 1;
    if (!isNext || hash !== linkHash(this.head.hash, { id, at, by, action, subject, detail }))
      throw broken(this.head.id + 1);
    this.head = { id, hash };
  }
}

interface AuditColumns {
  id: number;
  at: number;
  done_by: string;
  action: string;
  subject: string;
  detail: string;
}

export function hexOf(bytes: unknown): string {
  return Buffer.from(bytes as Uint8Array).toString('hex');
}

function broken(id: number): RankdError {
  return new RankdError('conflict', `The audit is broken at event #${id}, so nothing was copied.`, {
    hint: 'run `rankd audit verify` on the source',
  });
}

function differs(table: string, expected: number, found: number): RankdError {
  const counts = expected === found ? '' : ` (${counted(expected, 'row')} expected, ${found} found)`;
  const message = `The copy of ${table} does not match the source${counts}, so it was removed.`;
  return new RankdError('store_unavailable', message, { hint: 'run `rankd db check` on the source' });
}
