import { closeSync, constants, copyFileSync, existsSync, linkSync, openSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { refuseReadOnlyFileSystem } from '../../../base/data-dir.ts';
import { codeOf, RankdError } from '../../../base/errors.ts';
import { asFileError, companions, removeDatabase, renameFile, writeWhole } from '../../../base/files.ts';
import { crypto } from '../../../base/node-modules.ts';
import { type ChainLink, chainStart } from '../../../core/audit.ts';
import { databaseRestored, rowAfter } from '../../../core/events.ts';
import type { Clock, ExaminedBackup, Migration, RestoreRequest } from '../../../ports/index.ts';
import { insertEvent } from '../../sql/audit.ts';
import { Connection } from '../engine/connection.ts';
import { sqliteDialect } from '../engine/statements.ts';
import { migrate } from '../schema/migrate.ts';
import { copyPathBefore, schemaFlaws, schemaVersion } from '../schema/schema-version.ts';
import { checkDigest } from './backup.ts';
import { examine, flawOf, newestSchema } from './examine.ts';
import { copyDatabase, databaseName, onExisting } from './existing.ts';

export function examineBackup(file: string): ExaminedBackup {
  if (!existsSync(file)) {
    throw new RankdError('not_found', `There is no file ${file}.`, { hint: 'name a file that `rankd backup` made' });
  }
  if (!statSync(file).isFile()) throw unusable(file, 'is not a file');
  const digest = orUnusable(file, () => checkDigest(file));
  const { examination, foreign } = orUnusable(file, () => {
    const db = new Connection(file, { isReadonly: true });
    try {
      const examination = examine(db);
      return { examination, foreign: schemaFlaws(db, examination.schema) };
    } finally {
      db.close();
    }
  });
  if (digest === 'wrong') throw unusable(file, 'is damaged (its digest does not match)');
  const flaw = flawOf(examination);
  if (flaw !== undefined) throw unusable(file, `is damaged (${flaw})`);
  if (foreign[0] !== undefined) throw unusable(file, `has a schema that rankd did not create (${foreign[0]})`);
  return { ...examination, hasDigest: digest === 'right' };
}

/**
 * Restores a backup. Returns the new path of the old database, or `undefined` if there was none. Throws `usage` if the
 * backup is the database itself, `conflict` if another process has the database open, and the same errors as
 * `writeWhole`.
 */
export function restoreBackup(
  { dataDir, file, by }: RestoreRequest & { dataDir: string },
  clock: Pick<Clock, 'now'>,
): string | undefined {
  const to = join(dataDir, databaseName);
  if (isSameFile(file, to)) throw new RankdError('usage', `${file} is the database itself.`, { hint: 'name a backup' });
  const kept = `${to}.before-restore-${timestampOf(clock.now())}`;
  return writeWhole({ to, unfinished: `${to}.restoring`, mayReplace: true }, (unfinished) => {
    copyDatabase(file, unfinished, { isReadonly: true });
    const restored = { file: basename(file), kept: existsSync(to) ? basename(kept) : null };
    // Adds the audit event to the copy before the copy replaces the database.
    migrateCopy(unfinished, clock, (db) => {
      const { people: _, ...row } = rowAfter(
        db.get<ChainLink>(sqliteDialect.chainEnd) ?? chainStart,
        databaseRestored(databaseName, restored, { by, at: clock.now() }),
      );
      db.run(insertEvent(sqliteDialect), { ...row });
    });
    return setAside(to, kept);
  });
}

/** Saves the old database as `kept`, and leaves no log behind that SQLite could apply to the new database. */
function setAside(database: string, kept: string): string | undefined {
  const wasThere = existsSync(database);
  if (wasThere) {
    mergeLog(database);
    linkOrCopy(database, kept);
  }
  const leftOver = companions.filter((suffix) => existsSync(database + suffix));
  for (const suffix of leftOver) renameFile(database + suffix, kept + suffix);
  return wasThere ? kept : undefined;
}

/**
 * Merges the write-ahead log into the old database, unless the database is damaged. Throws `conflict` if another
 * process has the database open.
 */
function mergeLog(file: string): void {
  try {
    const db = new Connection(file, { lockTimeoutMs: 0 }); // a lock means that another process has it open
    try {
      const mode = db.get<{ journal_mode: string }>('PRAGMA journal_mode = DELETE')?.journal_mode;
      if (mode !== 'delete') throw inUse(file);
    } finally {
      db.close();
    }
  } catch (error) {
    const code = codeOf(error instanceof RankdError ? error.cause : error);
    if (code.startsWith('SQLITE_BUSY')) throw inUse(file, error);
    if (!code.startsWith('SQLITE_CORRUPT') && code !== 'SQLITE_NOTADB') throw error;
  }
}

/**
 * Links a file to a second name, or copies it. The file also keeps its first name until the new database replaces it,
 * so the database is never missing.
 */
function linkOrCopy(file: string, kept: string): void {
  try {
    linkSync(file, kept);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw error;
    copyFileSync(file, kept, constants.COPYFILE_EXCL); // the file system does not support hard links
  }
}

function isSameFile(one: string, other: string): boolean {
  if (!existsSync(one) || !existsSync(other)) return false;
  const [a, b] = [statSync(one), statSync(other)];
  return a.dev === b.dev && a.ino === b.ino;
}

/** For example, `20260801T120000123Z`. */
function timestampOf(epochMs: number): string {
  return new Date(epochMs).toISOString().replaceAll(/[-:.]/g, '');
}

function orUnusable<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RankdError))
      throw ['EACCES', 'EPERM'].includes(codeOf(error)) ? unreadable(file, error) : error;
    const code = codeOf(error.cause);
    if (error.code === 'config_invalid') throw unusable(file, 'is not a rankd database', error);
    if (code.startsWith('SQLITE_CORRUPT')) throw unusable(file, 'is damaged', error);
    if (code.startsWith('SQLITE_CANTOPEN')) throw unreadable(file, error);
    throw error;
  }
}

function unusable(file: string, what: string, cause?: unknown): RankdError {
  return new RankdError('backup_unusable', `${file} ${what}; nothing was changed.`, {
    hint: 'name a file that `rankd backup` made, or an older copy',
    cause,
  });
}

function unreadable(file: string, cause: unknown): RankdError {
  return new RankdError('no_permission', `rankd can't read ${file}; nothing was changed.`, {
    hint: `check that ${file} is a file, that this user can read it, and that this user can write to its folder`,
    cause,
  });
}

function inUse(file: string, cause?: unknown): RankdError {
  return new RankdError('conflict', 'Another process has the database open; nothing was changed.', {
    hint: `stop the process that is using ${dirname(file)}, then run the command again`,
    cause,
  });
}

export function migrateDatabase(dataDir: string, clock: Pick<Clock, 'now'>): Migration {
  refuseReadOnlyFileSystem(dataDir);
  return onExisting(dataDir, (db) => migrate(db, clock));
}

export function tryMigration(dataDir: string, clock: Pick<Clock, 'now'>): Migration {
  refuseReadOnlyFileSystem(dataDir);
  const migration = onExisting(dataDir, migrationOf);
  if (migration.from < migration.to) tryOnCopy(migration.database, clock);
  return { ...migration, note: 'A copy was migrated and passed all checks; the database is unchanged.' };
}

function migrationOf(db: Connection): Migration {
  const from = schemaVersion(db, newestSchema);
  const isCopied = from > 0 && from < newestSchema;
  return { database: db.file, from, to: newestSchema, copy: isCopied ? copyPathBefore(db.file, newestSchema) : null };
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

/** Migrates a copy to the newest schema, runs `finish` on it in a transaction, and checks its integrity. */
function migrateCopy(
  file: string,
  clock: Pick<Clock, 'now'>,
  finish: (db: Connection) => void = () => undefined,
): void {
  const db = new Connection(file);
  try {
    migrate(db, clock, { makesCopy: false });
    db.write(() => finish(db));
    const flaw = flawOf(examine(db)) ?? schemaFlaws(db, newestSchema)[0];
    if (flaw === undefined) return;
    throw new RankdError('store_unavailable', `The copy failed a check after the migration: ${flaw}.`, {
      hint: 'rankd db check',
    });
  } finally {
    db.close();
  }
}
