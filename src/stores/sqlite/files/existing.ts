import { copyFileSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isOnReadOnlyFileSystem, refuseLink } from '../../../base/data-dir.ts';
import { RankdError } from '../../../base/errors.ts';
import { asFileError, ScratchDirectory } from '../../../base/files.ts';
import { Connection } from '../engine/connection.ts';

export const databaseName = 'rankd.db';

export function hasDatabase(dataDir: string): boolean {
  return existsSync(join(dataDir, databaseName));
}

/** Runs `work` on an existing database without migrating it. Throws `not_found` if there is none. */
export function onExisting<T>(dataDir: string, work: (db: Connection) => T): T {
  const { db, close } = openExisting(dataDir);
  try {
    return work(db);
  } finally {
    close();
  }
}

/**
 * Opens an existing database without migrating it, even on a read-only file system. Throws the same errors as
 * `requireDatabase`.
 */
export function openExisting(dataDir: string): { db: Connection; close(): void } {
  const file = requireDatabase(dataDir);
  if (isOnReadOnlyFileSystem(dataDir)) return openReadOnly(file);
  const db = new Connection(file);
  return { db, close: () => db.close() };
}

/**
 * Opens a private copy of a database and its log, because SQLite can't create its index file on a read-only file
 * system. (`immutable=1` is not available, because the addon does not accept URIs.)
 */
function openReadOnly(file: string): { db: Connection; close(): void } {
  const scratch = new ScratchDirectory();
  const copy = join(scratch.path, databaseName);
  try {
    copyUnchanged(file, copy);
    const db = new Connection(copy);
    const close = () => {
      db.close();
      scratch[Symbol.dispose]();
    };
    return { db, close };
  } catch (error) {
    scratch[Symbol.dispose]();
    throw asFileError(error, copy);
  }
}

/**
 * Copies a database, and retries if it changes in the meantime: another machine may be able to write to the file
 * system.
 */
function copyUnchanged(from: string, to: string): void {
  const files = () => ['', '-wal'].filter((suffix) => existsSync(from + suffix));
  const state = () => files().map((suffix) => `${suffix} ${statSync(from + suffix, { bigint: true }).mtimeNs}`);
  for (let tries = 0; tries < 3; tries += 1) {
    const before = state().join();
    for (const suffix of files()) copyFileSync(from + suffix, to + suffix);
    if (state().join() === before) return;
  }
  throw new RankdError(
    'store_unavailable',
    `${from} changed while rankd was reading it; another process is writing to it.`,
    {
      hint: 'run the command where the data directory is writable',
    },
  );
}

/** Returns the path of the database. Throws `not_found` if there is none, and `config_invalid` if it is a link. */
export function requireDatabase(dataDir: string): string {
  const file = join(dataDir, databaseName);
  refuseLink(file);
  if (hasDatabase(dataDir)) return file;
  throw new RankdError('not_found', `There is no rankd database in ${dataDir}.`, {
    hint: 'name the data directory with --data-dir, or create a database with `rankd serve`',
  });
}

/**
 * Copies a snapshot of a database, including its write-ahead log, into an empty file. Other processes can read and
 * write in the meantime. Does not sync the copy to disk.
 */
export function copyDatabase(from: string, to: string, { isReadonly = false } = {}): void {
  const source = new Connection(from, { isReadonly });
  try {
    copyInto(source, to);
  } finally {
    source.close();
  }
}

/** Copies a snapshot of an open database into an empty file. */
export function copyInto(source: Connection, to: string): void {
  source.run('VACUUM INTO @to', { to });
}
