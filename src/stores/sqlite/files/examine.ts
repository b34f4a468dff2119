import type { BackupContents, RowCounts } from '../../../ports/index.ts';
import { noRows, rowCountsSql } from '../../sql/operations.ts';
import { Connection } from '../engine/connection.ts';
import { notRankdDatabase } from '../engine/sqlite-error.ts';
import { sqliteDialect } from '../engine/statements.ts';
import { migrations } from '../schema/migrations.ts';
import { schemaVersion } from '../schema/schema-version.ts';

export interface Examination extends BackupContents {
  /** The highest row number that each table has ever used. */
  newestRows: Map<string, number>;
  /** The findings of SQLite's integrity check. */
  damage: string[];
  danglingRows: string[];
}

export const newestSchema = migrations.length;

/**
 * Reads and checks a whole database. Throws `config_invalid` if it is not a rankd database, `schema_newer` if a newer
 * rankd has migrated it, and `store_unavailable` if it is too damaged to read.
 */
export function examine(db: Connection): Examination {
  return db.read(() => {
    const schema = schemaVersion(db, newestSchema);
    if (schema === 0) throw notRankdDatabase(db.file);
    return {
      schema,
      rows: db.get<RowCounts>(rowCountsSql(sqliteDialect)) ?? noRows,
      newestRows: newestRows(db),
      damage: damageOf(db),
      danglingRows: danglingRowsOf(db),
    };
  });
}

export function examineFile(file: string): Examination {
  const db = new Connection(file, { isReadonly: true });
  try {
    return examine(db);
  } finally {
    db.close();
  }
}

export function flawOf({ damage, danglingRows }: Examination): string | undefined {
  return damage[0] ?? danglingRows[0];
}

export function newestRows(db: Connection): Map<string, number> {
  const rows = db.all<{ name: string; seq: number }>('SELECT name, seq FROM sqlite_sequence');
  return new Map(rows.map(({ name, seq }) => [name, seq]));
}

function damageOf(db: Connection): string[] {
  const findings = db.all<{ integrity_check: string }>('PRAGMA integrity_check');
  return findings.map((row) => row.integrity_check).filter((finding) => finding !== 'ok');
}

function danglingRowsOf(db: Connection): string[] {
  const rows = db.all<{ table: string; rowid: number | null; parent: string }>('PRAGMA foreign_key_check');
  return rows.map(({ table, rowid, parent }) => `row ${rowid ?? '?'} of ${table} refers to a missing row of ${parent}`);
}
