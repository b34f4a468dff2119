import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { isInDataDir, privateFile } from '../../../base/data-dir.ts';
import { RankdError } from '../../../base/errors.ts';
import { isLocked, toStoreError } from '../engine/sqlite-error.ts';

/**
 * Makes this process the only daemon on a data directory until the lock is disposed or the process ends. Throws
 * `conflict` if another daemon holds the lock, and the same errors as `openStore` if the directory can't be used.
 */
export async function acquireDaemonLock(dataDir: string): Promise<AsyncDisposable> {
  const lock = takeLock(privateFile(dataDir, daemonLockName), { timeoutMs: checkTimeoutMs });
  if (lock === undefined) throw alreadyRunning(dataDir);
  return {
    async [Symbol.asyncDispose]() {
      lock.release();
    },
  };
}

/**
 * Takes the daemon lock for a command that must run alone. Returns `undefined` if a daemon or any live node is using
 * the data directory.
 */
export function lockOutDaemons(dataDir: string): ProcessLock | undefined {
  const isNodeAlive = (name: string) => isNodeName(name) && isLockTaken(join(dataDir, name));
  if (readdirSync(dataDir).some(isNodeAlive)) return undefined;
  return takeLock(privateFile(dataDir, daemonLockName), { timeoutMs: checkTimeoutMs });
}

export function nodeLockName(id: string): string {
  return `${id}.lock`;
}

export function isNodeName(name: string): boolean {
  return /^node_\w+\.lock$/.test(name);
}

/** Returns true, and removes the node's lock file, if the node's process has ended or its handle was closed. */
export function hasNodeEnded(dataDir: string, id: string): boolean {
  return removeIfFree(join(dataDir, nodeLockName(id)));
}

export function removeFreeLocks(dataDir: string): void {
  for (const name of readdirSync(dataDir)) if (isNodeName(name)) removeIfFree(join(dataDir, name));
}

function removeIfFree(file: string): boolean {
  if (!existsSync(file)) return true;
  if (held.has(file)) return false;
  const lock = takeLock(file);
  lock?.release({ remove: true });
  return lock !== undefined;
}

/**
 * True if a daemon in any process is using the data directory. Throws `no_permission` if this user can't read the data
 * directory.
 */
export async function isDaemonRunning(dataDir: string): Promise<boolean> {
  return isInDataDir(dataDir, daemonLockName) && isLockTaken(join(dataDir, daemonLockName));
}

/**
 * The file that stores a daemon's node id if it uses PostgreSQL, so that the directory's next daemon can deregister
 * that node immediately.
 */
export const nodeFileName = 'rankd.node';

export const daemonLockName = 'daemon.lock';

/** Long enough to outlast a check by another process, which takes a shared lock for an instant. */
const checkTimeoutMs = 250;

function alreadyRunning(dataDir: string): RankdError {
  return new RankdError('conflict', `A rankd daemon is already using the data directory ${dataDir}.`, {
    hint: 'stop that daemon first, or name a different directory with --data-dir',
  });
}

/**
 * A lock on a dedicated file, held by an open exclusive transaction. The operating system releases it when the process
 * ends, but not while the process is suspended.
 */
export interface ProcessLock {
  /** Releases the lock. With `remove`, removes its file first, so that no process can take this lock again. */
  release(options?: { remove?: boolean }): void;
}

/** The lock files that this thread holds, so that checking one of them does not require opening it. */
const held = new Set<string>();

/**
 * Takes the lock on an existing file. Returns `undefined` if any process, including this one, already holds it. Waits
 * at most `timeoutMs` for a process that is only checking the lock. Throws the same errors as `openStore` if the file
 * can't be used.
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
  held.add(file);
  return {
    release({ remove = false } = {}) {
      held.delete(file);
      if (remove) removeIfPossible(file);
      database.close();
      if (remove) removeIfPossible(file);
    },
  };
}

function isLockTaken(file: string): boolean {
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

/** Removes a file, and ignores any error: on Windows, an open file can't be removed. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {}
}

function open(file: string, options: { readonly?: boolean; timeout: number }): Database.Database {
  try {
    return new Database(file, { ...options, fileMustExist: true });
  } catch (error) {
    throw toStoreError(error, file);
  }
}
