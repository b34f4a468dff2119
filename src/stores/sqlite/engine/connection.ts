import Database from 'better-sqlite3';
import { systemClock } from '../../../base/clock.ts';
import { isRankdError, RankdError } from '../../../base/errors.ts';
import { retryEveryMs, WriteQueue } from './group-commit.ts';
import { LogSync } from './log-sync.ts';
import { isLocked, toStoreError } from './sqlite-error.ts';

/** Values by name: `{ keyId }` is `@keyId` in the statement. */
export type Bindings = Record<string, string | number | Buffer | null | undefined>;

export interface ConnectionOptions {
  lockTimeoutMs?: number;
  isReadonly?: boolean;
}

/**
 * One handle on a database file. Statements are prepared once, by their text. Everything but waiting for another
 * process's write lock, and for the disk, is synchronous, and every failure leaves as a RankdError.
 */
export class Connection {
  readonly file: string;
  /** Set by a `write` that the disk did not take, for want of room say; whoever finds out that it takes them again resets it. */
  hasFailedToWrite = false;
  readonly #lockTimeoutMs: number;
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Statement>();
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;
  readonly #writes: WriteQueue;
  #isSyncedBeside = false;
  #isLogBegun = false;
  #logSync: LogSync | undefined;
  /** To ask better-sqlite3 for both with each statement was a twentieth of what the store takes for a change. */
  #isInTransaction = false;
  #isClosed = false;
  readonly #watchers: Array<{ tables: readonly string[]; onWrite: () => void }> = [];

  /** `lockTimeoutMs`: how long to wait for another process's lock, in milliseconds. */
  constructor(file: string, { lockTimeoutMs = 5_000, isReadonly = false }: ConnectionOptions = {}) {
    this.file = file;
    this.#lockTimeoutMs = lockTimeoutMs;
    this.#database = waitingForLocks(() => openDatabase(file, isReadonly), lockTimeoutMs);
    this.#transaction = this.#database.transaction((work: () => unknown) => {
      const isInner = this.#isInTransaction;
      this.#isInTransaction = true;
      try {
        return work();
      } finally {
        this.#isInTransaction = isInner;
      }
    });
    this.#writes = new WriteQueue({
      commit: (work) => this.#commit(work),
      sync: async () => this.#logSync?.sync(),
      lockTimeoutMs,
    });
  }

  get<Row>(sql: string, bindings: Bindings = {}): Row | undefined {
    return this.#waitingForLocks(() => this.#prepared(sql).query.get(bindings) as Row | undefined);
  }

  all<Row>(sql: string, bindings: Bindings = {}): Row[] {
    return this.#waitingForLocks(() => this.#prepared(sql).query.all(bindings) as Row[]);
  }

  /** Returns how many rows were changed. */
  run(sql: string, bindings: Bindings = {}): number {
    this.#refuseUnsynced();
    return this.#waitingForLocks(() => {
      const { query, table } = this.#prepared(sql);
      this.#tellOfWrite(table);
      return query.run(bindings).changes;
    });
  }

  /** Runs statements that are needed once; nothing is returned. */
  execute(sql: string): void {
    this.#refuseUnsynced();
    this.#tellOfWrite(undefined);
    this.#guard(() => this.#database.exec(sql)); // not again where it fails half-way
  }

  /** `onWrite` is called before this connection writes to one of the tables; what others commit is in `othersVersion`. */
  watch(tables: readonly string[], onWrite: () => void): void {
    this.#watchers.push({ tables, onWrite });
  }

  /** A number that is another one once anybody else has committed (https://sqlite.org/pragma.html#pragma_data_version). */
  get othersVersion(): number {
    return this.get<{ data_version: number }>('PRAGMA data_version')?.data_version ?? 0;
  }

  /** Several reads of one state of the database; `work` may be run more than once. */
  read<T>(work: () => T): T {
    return this.#waitingForLocks(() => this.#transaction.deferred(work) as T);
  }

  /**
   * All of `work` or nothing of it. Takes the write lock before the first read (BEGIN IMMEDIATE): a transaction that
   * begins with a read fails at its first write when another process has committed meanwhile, however long it would wait.
   */
  write<T>(work: () => T): Promise<T> {
    return this.#writes.add(work);
  }

  /** As `write`, but holds the thread while it waits: for the time before anything is served. `work` may be run more than once. */
  writeSync<T>(work: () => T): T {
    this.#refuseUnsynced();
    return this.#waitingForLocks(() => this.#transaction.immediate(work) as T);
  }

  /** Lets readers and one writer work at the same time. Kept in the file, so only its first opener changes anything. */
  useWriteAheadLog(): void {
    const mode = this.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL')?.journal_mode;
    if (mode === 'wal') return;
    throw new RankdError('store_unavailable', 'The file system of the database does not support a write-ahead log.', {
      hint: 'put the data directory on a local disk and name it with --data-dir',
    });
  }

  /** From here on the disk is waited for beside the thread, and `write` is the only way to write. With a write-ahead log alone. */
  syncBesideTheThread(): void {
    this.#isSyncedBeside = true;
  }

  /** Throws `store_unavailable` where the files are not there any more that a daemon has opened. */
  refuseOtherFiles(): void {
    this.#guard(() => this.#logSync?.refuseOtherFiles());
  }

  close(): void {
    if (!this.#isClosed) this.#logSync?.close();
    this.#isClosed = true;
    this.#database.close();
  }

  #commit<T>(work: () => T): T {
    try {
      return this.#guard(() => {
        if (!this.#isLogBegun) this.#beginLog();
        return this.#transaction.immediate(work) as T;
      });
    } catch (error) {
      if (isRankdError(error, 'store_unavailable') && !isLocked(error)) this.hasFailedToWrite = true;
      throw error;
    }
  }

  /**
   * The log begins anew, with what it held in the database: behind what a daemon wrote to it and could not bring to the disk, nothing
   * would be safe. Where another process is at work in it just then, the next commit tries again.
   */
  #beginLog(): void {
    const [{ busy }] = this.#database.pragma('wal_checkpoint(RESTART)') as [{ busy: number }];
    if (this.#isSyncedBeside && this.#logSync === undefined) {
      this.#database.pragma('synchronous = NORMAL');
      this.#logSync = new LogSync(this.file);
    }
    this.#isLogBegun = busy === 0;
  }

  #refuseUnsynced(): void {
    if (!this.#isSyncedBeside || this.#isInTransaction) return;
    throw new TypeError('nothing would wait for the disk: this connection writes by write() alone');
  }

  #prepared(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = {
        query: this.#database.prepare<Bindings>(plannedOnce(sql)),
        table: writtenTable.exec(sql)?.[1]?.toLowerCase(),
      };
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** `table`: the one that is written to; `undefined` where that is not known. */
  #tellOfWrite(table: string | undefined): void {
    for (const { tables, onWrite } of this.#watchers) if (table === undefined || tables.includes(table)) onWrite();
  }

  /** Within a transaction nothing is waited for: what it has seen so far may be the reason, so all of it is tried again. */
  #waitingForLocks<T>(work: () => T): T {
    if (this.#isInTransaction) return this.#guard(work);
    return waitingForLocks(() => this.#guard(work), this.#lockTimeoutMs);
  }

  #guard<T>(work: () => T): T {
    if (this.#isClosed) throw new RankdError('store_unavailable', 'The database of rankd is closed.');
    this.#logSync?.refuseAfterFailure();
    try {
      return work();
    } catch (error) {
      throw toStoreError(error, this.file);
    }
  }
}

interface Statement {
  query: Database.Statement<[Bindings]>;
  /** The table that it writes to, where it is one of the plain writes. */
  table: string | undefined;
}

/**
 * Where a bound value could change the plan, SQLite compiles the statement anew for every value, which takes longer than most looks
 * (https://sqlite.org/c3ref/prepare.html). A plus sign before the value says that it can't. No statement has an `@` but before
 * the name of a value.
 */
function plannedOnce(sql: string): string {
  return sql.replace(/@\w+/g, '+$&');
}

/** The plain writes: whatever has another shape counts as a write to every table. */
const writtenTable = /^\s*(?:INSERT INTO|UPDATE(?! OR )|DELETE FROM)\s+(\w+)(?![\w.])/;

/**
 * Tries again while another process holds the lock, and holds the thread meanwhile: for opening, and for reads, which hardly ever
 * meet a lock in WAL mode. Writes wait in their queue, without the thread.
 */
function waitingForLocks<T>(work: () => T, lockTimeoutMs: number): T {
  for (let giveUpAt: number | undefined; ; ) {
    try {
      return work();
    } catch (error) {
      if (!isLocked(error)) throw error;
      const now = systemClock.monotonic();
      giveUpAt ??= now + lockTimeoutMs;
      if (now >= giveUpAt) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryEveryMs);
    }
  }
}

/** SQLite itself never waits for a lock (`timeout`): a write that did would hold the thread for seconds. */
function openDatabase(file: string, readonly: boolean): Database.Database {
  let database: Database.Database | undefined;
  try {
    database = new Database(file, { readonly, timeout: 0, fileMustExist: true });
    // In WAL mode anything less than synchronous=FULL can lose the last commits in a power cut, unless LogSync sees to it.
    for (const setting of ['synchronous = FULL', 'foreign_keys = ON', 'trusted_schema = OFF']) database.pragma(setting);
    return database;
  } catch (error) {
    database?.close();
    throw toStoreError(error, file);
  }
}
