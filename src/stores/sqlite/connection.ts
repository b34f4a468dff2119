import Database from 'better-sqlite3';
import { RankdError } from '../../errors.ts';
import { toStoreError } from './sqlite-error.ts';

/** Values by name: `{ keyId }` is `@keyId` in the statement. */
export type Bindings = Record<string, string | number | Buffer | null | undefined>;

/**
 * One handle on a database file. Statements are prepared once, by their text. Everything is synchronous, and every
 * failure leaves as a RankdError.
 */
export class Connection {
  readonly file: string;
  readonly #database: Database.Database;
  readonly #statements = new Map<string, Database.Statement<[Bindings]>>();
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;

  constructor(file: string) {
    this.file = file;
    this.#database = openDatabase(file);
    this.#transaction = this.#database.transaction((work: () => unknown) => work());
  }

  get<Row>(sql: string, bindings: Bindings = {}): Row | undefined {
    return this.#guard(() => this.#prepared(sql).get(bindings) as Row | undefined);
  }

  all<Row>(sql: string, bindings: Bindings = {}): Row[] {
    return this.#guard(() => this.#prepared(sql).all(bindings) as Row[]);
  }

  /** Returns how many rows were changed. */
  run(sql: string, bindings: Bindings = {}): number {
    return this.#guard(() => this.#prepared(sql).run(bindings).changes);
  }

  /** Runs statements that are needed once; nothing is returned. */
  execute(sql: string): void {
    this.#guard(() => this.#database.exec(sql));
  }

  /** Several reads of one state of the database. */
  read<T>(work: () => T): T {
    return this.#guard(() => this.#transaction.deferred(work) as T);
  }

  /**
   * All of `work` or nothing of it. Takes the write lock before the first read (BEGIN IMMEDIATE): a transaction that
   * begins with a read fails at its first write when another process has committed meanwhile, however long it would wait.
   */
  write<T>(work: () => T): T {
    return this.#guard(() => this.#transaction.immediate(work) as T);
  }

  /** Lets readers and one writer work at the same time. Kept in the file, so only its first opener changes anything. */
  useWriteAheadLog(): void {
    if (this.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL')?.journal_mode === 'wal') return;
    throw new RankdError('store_unavailable', 'The file system of the database does not support a write-ahead log.', {
      hint: 'put the data directory on a local disk and name it with --data-dir',
    });
  }

  close(): void {
    this.#database.close();
  }

  #prepared(sql: string): Database.Statement<[Bindings]> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare<Bindings>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
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

/** How long a statement waits for another process's write lock. */
const busyTimeoutMs = 5_000;

function openDatabase(file: string): Database.Database {
  let database: Database.Database | undefined;
  try {
    database = new Database(file, { fileMustExist: true, timeout: busyTimeoutMs });
    // In WAL mode anything less than synchronous=FULL can lose the last commits in a power cut.
    for (const setting of ['synchronous = FULL', 'foreign_keys = ON', 'trusted_schema = OFF']) database.pragma(setting);
    return database;
  } catch (error) {
    database?.close();
    throw toStoreError(error, file);
  }
}
