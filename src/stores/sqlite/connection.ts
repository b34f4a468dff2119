import Database from 'better-sqlite3';
import { systemClock } from '../../clock.ts';
import { RankdError } from '../../errors.ts';
import { isLocked, toStoreError } from './sqlite-error.ts';
import { retryEveryMs, type Transactions, WriteQueue } from './write-queue.ts';

/** Values by name: `{ keyId }` is `@keyId` in the statement. */
export type Bindings = Record<string, string | number | Buffer | null | undefined>;

export interface ConnectionOptions {
  patienceMs?: number;
  isReadonly?: boolean;
}

/**
 * One handle on a database file. Statements are prepared once, by their text. Everything but waiting for another
 * process's write lock is synchronous, and every failure leaves as a RankdError.
 */
export class Connection {
  readonly file: string;
  readonly #patienceMs: number;
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Database.Statement<[Bindings]>>();
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;
  readonly #writes: WriteQueue;
  #ownWrites = 0;

  /** `patienceMs`: how long to wait for another process's lock, in milliseconds. */
  constructor(file: string, { patienceMs = 5_000, isReadonly = false }: ConnectionOptions = {}) {
    this.file = file;
    this.#patienceMs = patienceMs;
    this.#database = openDatabase(file, { timeout: patienceMs, readonly: isReadonly });
    this.#transaction = this.#database.transaction((work: () => unknown) => work());
    const transactions: Transactions = {
      // SQLite's own wait for a lock would stop all requests for seconds, one after the other.
      commit: <T>(work: () => T) => this.#guard(() => this.#unlessBusy(() => this.#transaction.immediate(work) as T)),
      part: <T>(work: () => T) => this.#guard(() => this.#transaction(work) as T), // nested: a savepoint
      isAlive: () => this.#database.inTransaction,
    };
    this.#writes = new WriteQueue(transactions, patienceMs);
  }

  get<Row>(sql: string, bindings: Bindings = {}): Row | undefined {
    return this.#guard(() => this.#prepared(sql).get(bindings) as Row | undefined);
  }

  all<Row>(sql: string, bindings: Bindings = {}): Row[] {
    return this.#guard(() => this.#prepared(sql).all(bindings) as Row[]);
  }

  /** Returns how many rows were changed. */
  run(sql: string, bindings: Bindings = {}): number {
    this.#ownWrites += 1;
    return this.#guard(() => this.#prepared(sql).run(bindings).changes);
  }

  /** Runs statements that are needed once; nothing is returned. */
  execute(sql: string): void {
    this.#ownWrites += 1;
    this.#guard(() => this.#database.exec(sql));
  }

  /** How often this connection has written; what others commit is in `othersVersion`. */
  get ownWrites(): number {
    return this.#ownWrites;
  }

  /** A number that is another one once anybody else has committed (https://sqlite.org/pragma.html#pragma_data_version). */
  get othersVersion(): number {
    return this.get<{ data_version: number }>('PRAGMA data_version')?.data_version ?? 0;
  }

  /** Several reads of one state of the database. */
  read<T>(work: () => T): T {
    return this.#guard(() => this.#transaction.deferred(work) as T);
  }

  /**
   * All of `work` or nothing of it. Takes the write lock before the first read (BEGIN IMMEDIATE): a transaction that
   * begins with a read fails at its first write when another process has committed meanwhile, however long it would wait.
   */
  write<T>(work: () => T): Promise<T> {
    return this.#writes.add(work);
  }

  /** As `write`, but holds the thread while it waits: for the time before anything is served. */
  writeSync<T>(work: () => T): T {
    return this.#guard(() => this.#transaction.immediate(work) as T);
  }

  /** Lets readers and one writer work at the same time. Kept in the file, so only its first opener changes anything. */
  useWriteAheadLog(): void {
    if (this.#setJournalMode() === 'wal') return;
    throw new RankdError('store_unavailable', 'The file system of the database does not support a write-ahead log.', {
      hint: 'put the data directory on a local disk and name it with --data-dir',
    });
  }

  close(): void {
    this.#database.close();
  }

  /** Of two that open a new database at once, SQLite tells one at once that it is locked, whatever its patience. */
  #setJournalMode(): string | undefined {
    const giveUpAt = systemClock.monotonic() + this.#patienceMs;
    for (;;) {
      try {
        return this.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL')?.journal_mode;
      } catch (error) {
        if (!isLocked(error) || systemClock.monotonic() > giveUpAt) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryEveryMs); // before anything is served
      }
    }
  }

  #prepared(sql: string): Database.Statement<[Bindings]> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare<Bindings>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** Lets `work` fail at once where it would wait. A prepared PRAGMA busy_timeout has no effect when it is run again. */
  #unlessBusy<T>(work: () => T): T {
    this.#database.pragma('busy_timeout = 0');
    try {
      return work();
    } finally {
      this.#database.pragma(`busy_timeout = ${this.#patienceMs}`);
    }
  }

  #guard<T>(work: () => T): T {
    if (!this.#database.open) throw new RankdError('store_unavailable', 'The database of rankd is closed.');
    try {
      return work();
    } catch (error) {
      throw toStoreError(error, this.file);
    }
  }
}

function openDatabase(file: string, options: { timeout: number; readonly: boolean }): Database.Database {
  let database: Database.Database | undefined;
  try {
    database = new Database(file, { ...options, fileMustExist: true });
    // In WAL mode anything less than synchronous=FULL can lose the last commits in a power cut.
    for (const setting of ['synchronous = FULL', 'foreign_keys = ON', 'trusted_schema = OFF']) database.pragma(setting);
    return database;
  } catch (error) {
    database?.close();
    throw toStoreError(error, file);
  }
}
