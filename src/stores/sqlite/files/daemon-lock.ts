import { join } from 'node:path';
import Database from 'better-sqlite3';
import { RankdError } from '../../../base/errors.ts';
import { isInDataDir, privateFile } from '../../../base/files/data-dir.ts';
import { isLocked, toStoreError } from '../engine/sqlite-error.ts';

/**
 * The lock is an open exclusive transaction on a file of its own: the operating system drops it with the process.
 * Throws as `openStore` if the directory can't be used.
 */
export async function acquireDaemonLock(dataDir: string): Promise<AsyncDisposable> {
  const file = privateFile(dataDir, lockName);
  const lock = openLock(file, { timeout: probeTimeoutMs });
  try {
    lock.pragma('journal_mode = MEMORY');
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    throw isLocked(error) ? alreadyRunning(dataDir, error) : toStoreError(error, file);
  }
  return {
    async [Symbol.asyncDispose]() {
      lock.close();
    },
  };
}

export async function isDaemonRunning(dataDir: string): Promise<boolean> {
  if (!isInDataDir(dataDir, lockName)) return false;
  const file = join(dataDir, lockName);
  const lock = openLock(file, { readonly: true, timeout: 0 });
  try {
    lock.prepare('SELECT count(*) FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if (isLocked(error)) return true;
    throw toStoreError(error, file);
  } finally {
    lock.close();
  }
}

const lockName = 'daemon.lock';

/** To look whether a daemon runs takes a shared lock for an instant; a daemon that starts just then waits for its end. */
const probeTimeoutMs = 250;

function openLock(file: string, options: { readonly?: boolean; timeout: number }): Database.Database {
  try {
    return new Database(file, { ...options, fileMustExist: true });
  } catch (error) {
    throw toStoreError(error, file);
  }
}

function alreadyRunning(dataDir: string, cause: unknown): RankdError {
  return new RankdError('conflict', `Another rankd daemon is running on the data directory ${dataDir}.`, {
    hint: 'stop the other daemon first, or name another directory with --data-dir',
    cause,
  });
}
