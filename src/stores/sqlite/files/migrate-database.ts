import { closeSync, openSync } from 'node:fs';
import { RankdError } from '../../../base/errors.ts';
import { asFileError, removeDatabase } from '../../../base/files.ts';
import { crypto } from '../../../base/node-modules.ts';
import type { Clock, Migration } from '../../../ports/index.ts';
import { Connection } from '../engine/connection.ts';
import { migrate } from '../schema/migrate.ts';
import { schemaFlaws } from '../schema/schema-flaws.ts';
import { copyBefore, schemaVersion } from '../schema/schema-version.ts';
import { copyDatabase } from './copy-database.ts';
import { examine, flawOf, newestSchema } from './examine.ts';
import { onExisting } from './existing.ts';

export function migrateDatabase(dataDir: string, clock: Pick<Clock, 'now'>): Migration {
  return onExisting(dataDir, (db) => migrate(db, clock));
}

export function tryMigration(dataDir: string, clock: Pick<Clock, 'now'>): Migration {
  const migration = onExisting(dataDir, migrationOf);
  if (migration.from < migration.to) tryOnCopy(migration.database, clock);
  return { ...migration, note: 'A copy was migrated and found sound; the database is as it was.' };
}

function migrationOf(db: Connection): Migration {
  const from = schemaVersion(db, newestSchema);
  const isCopied = from > 0 && from < newestSchema;
  return { database: db.file, from, to: newestSchema, copy: isCopied ? copyBefore(db.file, newestSchema) : null };
}

function tryOnCopy(database: string, clock: Pick<Clock, 'now'>): void {
  const trial = `${database}.trial-${crypto().randomBytes(4).toString('hex')}`;
  try {
    closeSync(openSync(trial, 'wx', 0o600));
    copyDatabase(database, trial);
    migrateCopy(trial, clock);
  } catch (error) {
    throw asFileError(error, trial);
  } finally {
    removeDatabase(trial);
  }
}

/** Brings a copy to the newest schema, lets `finish` work on it in one transaction, and checks that it is sound. */
export function migrateCopy(
  file: string,
  clock: Pick<Clock, 'now'>,
  finish: (db: Connection) => void = () => undefined,
): void {
  const db = new Connection(file);
  try {
    migrate(db, clock, { keepsCopy: false });
    db.writeSync(() => finish(db));
    const flaw = flawOf(examine(db)) ?? schemaFlaws(db, newestSchema)[0];
    if (flaw === undefined) return;
    throw new RankdError('store_unavailable', `The database would not be sound after the migration: ${flaw}.`, {
      hint: 'rankd db check',
    });
  } finally {
    db.close();
  }
}
