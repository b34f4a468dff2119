import { RankdError } from '../../base/errors.ts';
import { placeOf, type ServerAddress } from '../../base/net.ts';
import { counted } from '../../base/text.ts';
import type { Clock, CopiedContents, CopyPlace, StoreContents, StoredRow } from '../../ports/index.ts';
import { type CopyTarget, copiedTables, copyContents, hexOf, pagesOf } from '../copy-contents.ts';
import type { Reader } from '../sql/database.ts';
import { type Database, onDatabase, type Transaction } from './engine/database.ts';
import { toParameter } from './engine/statements.ts';
import { type ClusterMemory, KnownCluster } from './known-cluster.ts';
import { migrateWithin, newestSchema, schemaVersion } from './schema/migrate.ts';

export function databasePlace(address: ServerAddress, clock: Clock, clusters?: ClusterMemory): CopyPlace {
  const on = <T>(work: (db: Database) => Promise<T>) => onDatabase(address, work, new KnownCluster(address, clusters));
  return {
    text: placeOf(address),
    async lockOutDaemons() {
      const { others } = (await on((db) => db.get<{ others: number }>(othersSql))) ?? { others: 0 };
      if (others > 0) throw inUse(address, others);
      return { [Symbol.asyncDispose]: async () => undefined };
    },
    read: (work) =>
      on((db) =>
        db.read(async (reader) => {
          const schema = await schemaVersion(reader, address);
          if (schema !== newestSchema) throw schema === 0 ? nothingIn(address) : otherSchema(address, schema);
          return work(contentsOf(reader));
        }),
      ),
    fill: (contents) => on((db) => db.underLock((transaction) => fill(transaction, { address, clock, contents }))),
  };
}

/** Counts rankd's other connections to the database. A running daemon always has at least one. */
const othersSql = `
  SELECT count(*) AS others FROM pg_stat_activity
  WHERE datname = current_database() AND (application_name = 'rankd' OR application_name LIKE 'rankd %') AND pid <> pg_backend_pid()`;

function contentsOf(reader: Reader): StoreContents {
  return {
    rows: (table) =>
      pagesOf(table, {
        source: `rankd.${table}`,
        asKey: (column) => (isText(column) ? `${column} COLLATE "C"` : column),
        query: async (sql, after) => (await reader.all<Record<string, unknown>>(sql, after)).map(toStored),
      }),
    async numbers() {
      const rows = await reader.all<{ table: string; number: number }>(numbersSql);
      return new Map(rows.filter(({ table }) => table in copiedTables).map(({ table, number }) => [table, number]));
    },
  };
}

function isText(column: string): boolean {
  return ['key_id', 'field', 'group_title', 'webhook_id', 'discord_id'].includes(column);
}

const numbersSql = `
  SELECT relname AS "table", coalesce(pg_sequence_last_value(pg_get_serial_sequence('rankd.' || relname, 'seq')::regclass), 0) AS number
  FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'seq' AND attidentity <> ''
  WHERE relnamespace = 'rankd'::regnamespace
  UNION ALL SELECT 'audit_events', last_id FROM rankd.audit_head`;

function toStored(row: Record<string, unknown>): StoredRow {
  const cells = Object.entries(row).map(([column, value]) => [
    column,
    typeof value === 'boolean' ? Number(value) : value,
  ]);
  return Object.fromEntries(cells) as StoredRow;
}

interface Filling {
  address: ServerAddress;
  clock: Clock;
  contents: StoreContents;
}

async function fill(transaction: Transaction, { address, clock, contents }: Filling): Promise<CopiedContents> {
  const schema = await schemaVersion(transaction, address);
  if (schema === 0) await migrateWithin(transaction, { from: 0, clock });
  else if (schema !== newestSchema) throw otherSchema(address, schema);
  const guarded = ['audit_events', 'audit_anchor', 'audit_head'];
  for (const table of guarded) transaction.runText(`ALTER TABLE rankd.${table} DISABLE TRIGGER USER`);
  const used = await transaction.get(
    'SELECT 1 AS used FROM rankd.audit_head WHERE last_id > 0 OR EXISTS (SELECT 1 FROM rankd.keys)',
  );
  if (used !== undefined) throw notEmpty(address);
  for (const table of Object.keys(copiedTables).reverse()) transaction.runText(`DELETE FROM rankd.${table}`);
  const copied = await copyContents(contents, targetOn(transaction));
  for (const table of guarded) transaction.runText(`ALTER TABLE rankd.${table} ENABLE TRIGGER USER`);
  return copied;
}

function targetOn(transaction: Transaction): CopyTarget {
  const insert = (table: string, rows: readonly Record<string, unknown>[]) => {
    const [first] = rows;
    if (first === undefined) return;
    const columns = Object.keys(first).join(', ');
    const cells = rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, fromCell(value)])),
    );
    transaction.run(
      `INSERT INTO rankd.${table} (${columns}) OVERRIDING SYSTEM VALUE
       SELECT ${columns} FROM json_populate_recordset(NULL::rankd.${table}, @rows::json)`,
      { rows: JSON.stringify(cells) },
    );
  };
  return {
    async insert(table, rows) {
      insert(table, rows);
      await transaction.get('SELECT 1 AS done'); // waits for the server, so that pages do not pile up in memory
    },
    async finish(numbers, { id, hash }) {
      transaction.run(`UPDATE rankd.audit_head SET last_id = @id, hash = decode(@hash, 'hex')`, { id, hash });
      for (const [table, number] of numbers) {
        if (number === 0 || table === 'audit_events' || !(table in copiedTables)) continue;
        transaction.run(`SELECT setval(pg_get_serial_sequence(@table, 'seq'), @number)`, {
          table: `rankd.${table}`,
          number,
        });
      }
    },
    contents: contentsOf(transaction),
  };
}

/** Converts a cell to a value that PostgreSQL can read from JSON. */
function fromCell(value: unknown): unknown {
  return value instanceof Uint8Array ? `\\x${hexOf(value)}` : toParameter(value);
}

function nothingIn(address: ServerAddress): RankdError {
  return new RankdError('not_found', `There is no rankd data in the database ${placeOf(address)}.`, {
    hint: 'check the name of the database in its URL; `rankd serve` creates the data',
  });
}

function otherSchema(address: ServerAddress, schema: number): RankdError {
  const message = `The database ${placeOf(address)} has schema ${schema}; only schema ${newestSchema} can be copied.`;
  return new RankdError('conflict', message, { hint: 'run rankd db migrate with store.url set to this database' });
}

function notEmpty(address: ServerAddress): RankdError {
  return new RankdError(
    'already_exists',
    `There is already rankd data in the database ${placeOf(address)}; nothing was changed.`,
    {
      hint: 'name an empty database, or empty this one with DROP SCHEMA rankd CASCADE',
    },
  );
}

function inUse(address: ServerAddress, others: number): RankdError {
  const message = `rankd has ${counted(others, 'open connection')} to ${placeOf(address)}; nothing was changed.`;
  return new RankdError('conflict', message, {
    hint: 'stop every daemon that uses this database, then run the command again',
  });
}
