import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { systemClock } from '../../../base/clock.ts';
import { codeOf, RankdError, type RankdErrorOptions } from '../../../base/errors.ts';

/**
 * Converts an SQLite error (https://sqlite.org/rescode.html) or any other error into a RankdError. Returns a RankdError
 * unchanged.
 */
export function toStoreError(error: unknown, file: string): RankdError {
  if (error instanceof RankdError) return error;
  if (!(error instanceof Database.SqliteError)) {
    if (isAboutAddon(error)) return addonMissing(error);
    return new RankdError('internal', 'A database operation failed because of a bug in rankd.', {
      cause: error,
    });
  }
  // An extended code, such as SQLITE_IOERR_WRITE, begins with its primary code.
  const primary = lacksLocks.has(error.code) ? 'SQLITE_NOLFS' : error.code.split('_', 2).join('_');
  if (primary === 'SQLITE_NOTADB') return notRankdDatabase(file, error);
  if (primary === 'SQLITE_CONSTRAINT') return constraintError(error);
  const { message, ...details } = failures(file)[primary] ?? {
    message: `The database reported an unexpected error (${error.code}).`,
    hint: 'check the log for the cause, then run the command again',
  };
  return new RankdError('store_unavailable', message, { ...details, cause: error });
}

/** SQLite's error codes for file systems without locks or shared memory, such as some network mounts. */
const lacksLocks = new Set([
  'SQLITE_PROTOCOL',
  'SQLITE_NOLFS',
  'SQLITE_IOERR_LOCK',
  'SQLITE_IOERR_RDLOCK',
  'SQLITE_IOERR_SHMMAP',
  'SQLITE_IOERR_SHMOPEN',
  'SQLITE_IOERR_SHMLOCK',
]);

/**
 * True if Node.js could not find or load the addon, because its package is missing or has no binary for this machine.
 */
function isAboutAddon(error: unknown): boolean {
  return ['MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'].includes(codeOf(error));
}

function addonMissing(cause: unknown): RankdError {
  return new RankdError('store_unavailable', "rankd can't load its SQLite addon, better-sqlite3.", {
    hint: 'install rankd again on this machine, or add -v to see the cause; the addon supports Linux, macOS and Windows on x64 and arm64',
    cause,
  });
}

export function isLocked(error: unknown): boolean {
  const cause = error instanceof RankdError ? error.cause : error;
  return cause instanceof Database.SqliteError && cause.code.startsWith('SQLITE_BUSY');
}

export function notRankdDatabase(file: string, cause?: unknown): RankdError {
  return new RankdError('config_invalid', `${file} is not a rankd database; it was not changed.`, {
    hint: `move it out of ${dirname(file)}, or name a different directory with --data-dir`,
    cause,
  });
}

/**
 * Returns messages and hints, keyed by primary result code. Messages can reach a game's log, so only hints contain
 * paths.
 */
function failures(file: string): Record<string, { message: string } & RankdErrorOptions> {
  const directory = dirname(file);
  return {
    SQLITE_FULL: {
      message: "The disk with rankd's database is full, so nothing was changed.",
      hint: `free up space on the file system of ${directory}`,
    },
    SQLITE_IOERR: {
      message: "The disk with rankd's database reported an error, so nothing was changed.",
      hint: `check the disk of ${directory}, its quota and the system log`,
    },
    SQLITE_NOLFS: {
      message:
        "The file system of rankd's database does not support file locks or shared memory, and rankd needs both.",
      hint: `move ${directory} to a local disk, and name its new path with --data-dir`,
    },
    SQLITE_BUSY: {
      message: "Another process has locked rankd's database, so nothing was changed.",
      hint: `try again; if the error persists, find the process that has ${file} open`,
      retryAfterMs: 1_000,
    },
    SQLITE_READONLY: {
      message: "rankd's database is read-only, so nothing was changed.",
      hint: `make ${directory} and its files writable by the user running rankd; if its file system is read-only, copy ${directory} to a writable disk and name the copy with --data-dir`,
    },
    SQLITE_CANTOPEN: {
      message: "rankd can't open its database.",
      hint: `check that ${file} is a file, that the user running rankd can write to ${directory} and its files, and that rankd has not reached its limit of open files (ulimit -n)`,
    },
    SQLITE_CORRUPT: {
      message: "rankd's database is damaged.",
      hint: `stop the daemon and restore a backup of ${file}: rankd restore FILE`,
    },
  };
}

function constraintError(cause: InstanceType<typeof Database.SqliteError>): RankdError {
  const isTaken = cause.code === 'SQLITE_CONSTRAINT_UNIQUE' || cause.code === 'SQLITE_CONSTRAINT_PRIMARYKEY';
  return isTaken
    ? new RankdError('conflict', 'The new record conflicts with an existing one.', { cause })
    : new RankdError('internal', 'The database rejected a record that violates its constraints.', { cause });
}

/** Throws if the SQLite addon can't be loaded on this machine. */
export function loadSqlite(): void {
  try {
    new Database(':memory:').close();
  } catch (error) {
    throw toStoreError(error, ':memory:');
  }
}

/** The delay between attempts to take the lock. */
export const retryEveryMs = 15;

/**
 * Retries `work` for at most `timeoutMs` milliseconds while the database is locked. Blocks the thread, so it is meant
 * for opening or migrating a database, and for reads, which are rarely locked out in WAL mode. `SqliteDatabase` retries
 * writes without blocking.
 */
export function retryWhileLocked<T>(work: () => T, timeoutMs: number): T {
  for (let giveUpAt: number | undefined; ; ) {
    try {
      return work();
    } catch (error) {
      if (!isLocked(error)) throw error;
      const now = systemClock.monotonic();
      giveUpAt ??= now + timeoutMs;
      if (now >= giveUpAt) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryEveryMs);
    }
  }
}
