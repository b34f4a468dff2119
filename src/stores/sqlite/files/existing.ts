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

/** Runs `work` on the database of a data directory as it is: nothing is made or migrated. Throws `not_found` if there is none. */
export function onExisting<T>(dataDir: string, work: (db: Connection) => T): T {
  const { db, close } = openExisting(dataDir);
  try {
    return work(db);
  } finally {
    close();
  }
}

/** The database of a data directory as it is, which may be on a read-only file system. Throws like `onExisting`. */
export function openExisting(dataDir: string): { db: Connection; close(): void } {
  const file = requireDatabase(dataDir);
  if (isOnReadOnlyFileSystem(dataDir)) return openReadOnly(file);
  const db = new Connection(file);
  return { db, close: () => db.close() };
}

/**
 * SQLite would have to make an index next to the file, so it reads a private copy of it and of its log. (The addon takes no URIs, so `immutable=1` can't
 * be asked for.)
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

/** The file system may be writable at another place, so this copies again if the files have changed in the meantime. */
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

/** The path of the database. Throws `not_found` if there is none, and `config_invalid` if it is a link. */
export function requireDatabase(dataDir: string): string {
  const file = join(dataDir, databaseName);
  refuseLink(file);
  if (hasDatabase(dataDir)) return file;
  throw new RankdError('not_found', `There is no rankd database in ${dataDir}.`, {
    hint: 'name the data directory with --data-dir, or create a database with `rankd serve`',
  });
}

/**
 * Copies one moment of a database, its write-ahead log included, into a file that is empty. Other processes can read
 * and write at the same time. The copy is one file; it is not synced to disk.
 */
export function copyDatabase(from: string, to: string, { isReadonly = false } = {}): void {
  const source = new Connection(from, { isReadonly });
  try {
    copyInto(source, to);
  } finally {
    source.close();
  }
}

/** The same, of a database that is open. */
export function copyInto(source: Connection, to: string): void {
  source.run('VACUUM INTO @to', { to });
}
