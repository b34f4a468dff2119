import { existsSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { isLocked, toStoreError } from '../engine/sqlite-error.ts';

/**
 * A lock that lives as long as a process: an open exclusive transaction on a file of its own. The operating system drops it
 * when the process ends, however that ends, and keeps it while the process is stopped. No clock takes part.
 */
export interface ProcessLock {
  /** Gives the lock up. With `remove`, its file goes first, so that nobody ever gets this lock again. */
  release(options?: { remove?: boolean }): void;
}

/**
 * Takes the lock of a file that exists. `undefined` if another process, or another part of this one, has it. `timeoutMs`: how long to wait
 * for somebody who only looks. Throws as `openStore` if the file can't be used.
 */
export function takeLock(file: string, { timeoutMs = 0 } = {}): ProcessLock | undefined {
  const database = open(file, { timeout: timeoutMs });
  try {
    database.pragma('journal_mode = MEMORY');
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (isLocked(error)) return undefined;
    throw toStoreError(error, file);
  }
  return {
    release({ remove = false } = {}) {
      if (remove) removeIfPossible(file);
      database.close();
      if (remove) removeIfPossible(file);
    },
  };
}

/** Whether anybody has the lock of a file that exists. Leaves the file as it is. */
export function isLockTaken(file: string): boolean {
  const database = open(file, { readonly: true, timeout: 0 });
  try {
    database.prepare('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if (isLocked(error)) return true;
    throw toStoreError(error, file);
  } finally {
    database.close();
  }
}

/** Windows removes no file that is open. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    if (!existsSync(file)) return;
  }
}

function open(file: string, options: { readonly?: boolean; timeout: number }): Database.Database {
  try {
    return new Database(file, { ...options, fileMustExist: true });
  } catch (error) {
    throw toStoreError(error, file);
  }
}
