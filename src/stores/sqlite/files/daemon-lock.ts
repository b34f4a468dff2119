import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { isInDataDir, privateFile } from '../../../base/data-dir.ts';
import { RankdError } from '../../../base/errors.ts';
import { isLocked, toStoreError } from '../engine/sqlite-error.ts';

/**
 * Makes this process the one daemon of a data directory until it is disposed or the process ends.
 * Throws `conflict` if another daemon has it, and like `openStore` if the directory can't be used.
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
 * The daemon's lock for a command that must run alone; `undefined` if a daemon works on this data directory, or a command changes a rank.
 */
export function lockOutDaemons(dataDir: string): ProcessLock | undefined {
  const isNodeAlive = (name: string) => isNodeName(name) && isLockTaken(join(dataDir, name));
  if (readdirSync(dataDir).some(isNodeAlive)) return undefined;
  return takeLock(privateFile(dataDir, daemonLockName), { timeoutMs: checkTimeoutMs });
}

/** The file whose lock a node holds. */
export function nodeLockName(id: string): string {
  return `${id}.lock`;
}

export function isNodeName(name: string): boolean {
  return /^node_\w+\.lock$/.test(name);
}

/** True once a node's process has ended or its handle was closed, and from then on. The file of its lock is removed. */
export function hasNodeEnded(dataDir: string, id: string): boolean {
  return removeIfFree(join(dataDir, nodeLockName(id)));
}

/** Removes the locks of nodes that were killed while they held nothing. */
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

/** Whether a daemon works on this data directory right now, in any process. Throws `no_permission` if this user may not read its lock. */
export async function isDaemonRunning(dataDir: string): Promise<boolean> {
  return isInDataDir(dataDir, daemonLockName) && isLockTaken(join(dataDir, daemonLockName));
}

/** The file with the id of a daemon's node on PostgreSQL: the next daemon of this directory takes its place at once. */
export const nodeFileName = 'rankd.node';

/** The file whose lock a daemon holds. */
export const daemonLockName = 'daemon.lock';

/** A check for a running daemon holds a shared lock for an instant; a daemon that starts just then waits for it. */
const checkTimeoutMs = 250;

function alreadyRunning(dataDir: string): RankdError {
  return new RankdError('conflict', `Another rankd daemon is running on the data directory ${dataDir}.`, {
    hint: 'stop that daemon first, or name a different directory with --data-dir',
  });
}

/**
 * A lock that lives as long as a process: an open exclusive transaction on a separate file. The operating system releases it when
 * the process ends, for any reason, but not while the process is stopped. No clock is involved.
 */
export interface ProcessLock {
  /** Releases the lock. With `remove`, its file is removed first, so that no process gets this lock again. */
  release(options?: { remove?: boolean }): void;
}

/** The files of the locks that this thread holds. They need no check, which opens a database, for each open change of this node. */
const held = new Set<string>();

/**
 * Takes the lock of a file that exists. `undefined` if another process, or another part of this one, has it. `timeoutMs`: how long to wait for
 * a process that only checks the lock. Throws like `openStore` if the file can't be used.
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

/** Whether any process has the lock of a file that exists. Leaves the file as it is. */
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

/** Removes a file. Fails silently on Windows while the file is open. */
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
