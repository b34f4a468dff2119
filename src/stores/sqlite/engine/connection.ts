import Database from 'better-sqlite3';
import { isRankdError, RankdError } from '../../../base/errors.ts';
import { outgrown } from '../../schema-errors.ts';
import { GroupCommit } from './group-commit.ts';
import { retryWhileLocked } from './lock-retry.ts';
import type { OpenedFiles } from './opened-files.ts';
import { isLocked, toStoreError } from './sqlite-error.ts';
import { type Bindings, Statements } from './statements.ts';
import { WriteAheadLog } from './write-ahead-log.ts';

export interface ConnectionOptions {
  /** How long to wait for another process's lock, in milliseconds. */
  lockTimeoutMs?: number;
  isReadonly?: boolean;
}

/**
 * One handle on a database file. All of it is synchronous, but for `write`. Every failure is thrown as a RankdError.
 */
export class Connection {
  readonly file: string;
  /** Set by a `write` that failed, for want of room say. Whoever finds out that writes succeed again resets it. */
  hasFailedToWrite = false;
  readonly #lockTimeoutMs: number;
  readonly #database: Database.Database;
  readonly #statements: Statements;
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;
  readonly #log: WriteAheadLog;
  readonly #groupCommit: GroupCommit;
  #ownWrites = 0;
  #schema: number | undefined;

  constructor(file: string, { lockTimeoutMs = 5_000, isReadonly = false }: ConnectionOptions = {}) {
    this.file = file;
    this.#lockTimeoutMs = lockTimeoutMs;
    this.#database = retryWhileLocked(() => openDatabase(file, isReadonly), lockTimeoutMs);
    this.#statements = new Statements(this.#database);
    this.#transaction = this.#database.transaction((work: () => unknown) => work());
    this.#log = new WriteAheadLog(this.#database);
    this.#groupCommit = new GroupCommit({
      commit: (work) => this.#commit(work),
      sync: () => this.#log.sync(),
      lockTimeoutMs,
    });
  }

  get<Row>(sql: string, bindings: Bindings = {}): Row | undefined {
    return this.#retry(() => this.#statements.prepare(sql).get(bindings) as Row | undefined);
  }

  all<Row>(sql: string, bindings: Bindings = {}): Row[] {
    return this.#retry(() => this.#statements.prepare(sql).all(bindings) as Row[]);
  }

  /** Returns how many rows were changed. */
  run(sql: string, bindings: Bindings = {}): number {
    this.#beginWrite();
    return this.#retry(() => this.#statements.prepare(sql).run(bindings).changes);
  }

  /** Runs statements that are needed once; nothing is returned. */
  execute(sql: string): void {
    this.#beginWrite();
    this.#guard(() => this.#database.exec(sql)); // not again where it fails half-way
  }

  /** Several reads of one state of the database. `work` may be run more than once. */
  read<T>(work: () => T): T {
    return this.#retry(() => this.#transaction.deferred(work) as T);
  }

  /**
   * Commits all of `work` or nothing of it; as `GroupCommit.add`. The transaction takes the write lock before its first read (BEGIN
   * IMMEDIATE): if it began with a read, its first write would fail whenever another process had committed meanwhile.
   */
  write<T>(work: () => T): Promise<T> {
    return this.#groupCommit.add(work);
  }

  /** As `write`, but blocks the thread: for the time before anything is served. `work` may be run more than once. */
  writeSync<T>(work: () => T): T {
    this.#beginWrite();
    return this.#retry(() => this.#transaction.immediate(work) as T);
  }

  /** A value that differs once anybody has written to the database, through this connection or another (https://sqlite.org/pragma.html#pragma_data_version). */
  get changeToken(): string {
    const others = this.get<{ data_version: number }>('PRAGMA data_version')?.data_version;
    return `${others}:${this.#ownWrites}`;
  }

  /** From here on, a commit fails if a later rankd has migrated the database from this schema to another. */
  requireSchema(version: number): void {
    this.#schema = version;
  }

  /** The error of a database whose schema a later rankd has changed since `requireSchema`. */
  outgrown(): RankdError | undefined {
    if (this.#schema === undefined) return undefined;
    const needed = this.get<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0;
    return needed > this.#schema ? outgrown(this.file, { needed, newest: this.#schema }) : undefined;
  }

  /** Throws `store_unavailable` for it: a daemon that has such a database is about to stop. */
  refuseOtherSchema(): void {
    const cause = this.outgrown();
    if (cause !== undefined) throw new RankdError('store_unavailable', cause.message, { hint: cause.hint, cause });
  }

  useWriteAheadLog(): void {
    this.#retry(() => this.#log.enable());
  }

  /** From here on `write` waits for the disk without blocking the thread, and is the only way to write. Needs the write-ahead log. */
  syncOffThread(): void {
    this.#guard(() => this.#log.syncOffThread());
  }

  /** Throws `store_unavailable` if one of `files` was removed, replaced or cut. */
  refuseHarmedFiles(): void {
    this.#guard(() => this.#log.refuseHarmedFiles());
  }

  /** The files that must stay in place while this connection is used. */
  get files(): OpenedFiles {
    return this.#log.files;
  }

  close(): void {
    if (this.#log.close()) this.#database.close();
    else abandoned.push(this.#database);
  }

  #commit<T>(work: () => T): T {
    try {
      return this.#guard(() => {
        this.#log.beforeCommit();
        return this.#transaction.immediate(() => {
          this.refuseOtherSchema();
          return work();
        }) as T;
      });
    } catch (error) {
      if (isRankdError(error, 'store_unavailable') && !isLocked(error)) this.hasFailedToWrite = true;
      throw error;
    }
  }

  #beginWrite(): void {
    if (this.#log.isSyncedOffThread && !this.#database.inTransaction) {
      throw new TypeError('nothing would wait for the disk: this connection writes by write() alone');
    }
    this.#ownWrites += 1;
  }

  /** Within a transaction nothing is tried again: what it has read so far may be outdated, so all of it is. */
  #retry<T>(work: () => T): T {
    if (this.#database.inTransaction) return this.#guard(work);
    return retryWhileLocked(() => this.#guard(work), this.#lockTimeoutMs);
  }

  #guard<T>(work: () => T): T {
    if (!this.#database.open) throw new RankdError('store_unavailable', 'The database of rankd is closed.');
    this.#log.refuseAfterFailure();
    try {
      return work();
    } catch (error) {
      throw toStoreError(error, this.file);
    }
  }
}

/**
 * Databases whose files were harmed, which stay open until the process ends: closing one moves its log into the database and removes the
 * log, with all that others wrote there since. A process that is ended by `process.exit` closes none.
 */
const abandoned: Database.Database[] = [];

/** SQLite itself never waits for a lock (`timeout: 0`), as it would block the thread meanwhile. */
function openDatabase(file: string, readonly: boolean): Database.Database {
  let database: Database.Database | undefined;
  try {
    database = new Database(file, { readonly, timeout: 0, fileMustExist: true });
    for (const setting of ['synchronous = FULL', 'foreign_keys = ON', 'trusted_schema = OFF', 'secure_delete = ON'])
      database.pragma(setting);
    return database;
  } catch (error) {
    database?.close();
    throw toStoreError(error, file);
  }
}
