import { join } from 'node:path';
import Database from 'better-sqlite3';
import { RankdError } from '../../../base/errors.ts';
import { isInDataDir, privateFile } from '../../../base/files/data-dir.ts';
import { isLocked, toStoreError } from '../engine/sqlite-error.ts';

/**
 * Makes this process the one daemon of a data directory until it is disposed or the process ends, however it ends: an
 * open exclusive transaction on a file of its own, whose lock the operating system drops with the process.
 * Throws `conflict` where another daemon has it, and as `openStore` where the directory cannot be used.
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

/** Whether a daemon works on this data directory right now, in any process. Throws `no_permission` where this user may not look. */
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

/** Looking whether a daemon runs holds a shared lock for an instant; a daemon that starts just then waits it out. */
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
