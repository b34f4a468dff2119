import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { RankdError } from '../../../base/errors.ts';
import type { Bindings, Reader } from '../../sql/database.ts';
import { hasNodeEnded } from '../files/daemon-lock.ts';
import { retryWhileLocked, toStoreError } from './sqlite-error.ts';
import { hasEndedFunction, Statements, sqliteDialect, valuesOf } from './statements.ts';

export interface ConnectionOptions {
  lockTimeoutMs?: number;
  isReadonly?: boolean;
}

/** A synchronous connection to a database file. All errors are RankdErrors. */
export class Connection {
  readonly file: string;
  readonly lockTimeoutMs: number;
  readonly #database: Database.Database;
  readonly #statements: Statements;
  readonly #transaction: Database.Transaction<(work: () => unknown) => unknown>;

  constructor(file: string, { lockTimeoutMs = 5_000, isReadonly = false }: ConnectionOptions = {}) {
    this.file = file;
    this.lockTimeoutMs = lockTimeoutMs;
    this.#database = retryWhileLocked(() => openDatabase(file, { isReadonly }), lockTimeoutMs);
    this.#statements = new Statements(this.#database);
    this.#transaction = this.#database.transaction((work: () => unknown) => work());
  }

  get<Row>(sql: string, bindings: Bindings = {}): Row | undefined {
    return this.#retry(() => this.#statements.prepare(sql).get(valuesOf(sql, bindings)) as Row | undefined);
  }

  all<Row>(sql: string, bindings: Bindings = {}): Row[] {
    return this.#retry(() => this.#statements.prepare(sql).all(valuesOf(sql, bindings)) as Row[]);
  }

  run(sql: string, bindings: Bindings = {}): number {
    return this.#retry(() => this.#statements.prepare(sql).run(valuesOf(sql, bindings)).changes);
  }

  /** Runs one or more statements without caching them. */
  execute(sql: string): void {
    this.#guard(() => this.#database.exec(sql)); // not retried, because some statements may already have run
  }

  /** Runs `work` on a single snapshot of the database. May run it more than once. */
  read<T>(work: () => T): T {
    return this.#retry(() => this.#transaction.deferred(work) as T);
  }

  /**
   * Runs `work` in a transaction. May run it more than once. Takes the write lock before the first read (BEGIN
   * IMMEDIATE), because the first write would otherwise fail if another process had committed since that read.
   */
  write<T>(work: () => T): T {
    return this.#retry(() => this.#transaction.immediate(work) as T);
  }

  /** Switches the database file to write-ahead logging, which lets readers run at the same time as one writer. */
  useWriteAheadLog(): void {
    this.#retry(() => {
      if (this.#database.pragma('journal_mode = WAL', { simple: true }) !== 'wal') throw noLogPossible();
      this.#database.pragma('user_version'); // the first read creates the log and its index
    });
  }

  close(): void {
    this.#database.close();
  }

  /**
   * Retries `work` while the database is locked. Within a transaction, only the whole transaction can be retried,
   * because its earlier reads may be stale.
   */
  #retry<T>(work: () => T): T {
    if (this.#database.inTransaction) return this.#guard(work);
    return retryWhileLocked(() => this.#guard(work), this.lockTimeoutMs);
  }

  #guard<T>(work: () => T): T {
    if (!this.#database.open) throw closed();
    try {
      return work();
    } catch (error) {
      throw toStoreError(error, this.file);
    }
  }
}

export function readerOf(connection: Connection): Reader {
  return {
    sql: sqliteDialect,
    get: async (sql, bindings) => connection.get(sql, bindings),
    all: async (sql, bindings) => connection.all(sql, bindings),
  };
}

/** Opens a connection that never waits for a lock (`timeout: 0`), because waiting in SQLite blocks the thread. */
export function openDatabase(file: string, { isReadonly = false } = {}): Database.Database {
  let database: Database.Database | undefined;
  try {
    database = new Database(file, { readonly: isReadonly, timeout: 0, fileMustExist: true });
    for (const setting of ['synchronous = FULL', 'foreign_keys = ON', 'trusted_schema = OFF', 'secure_delete = ON'])
      database.pragma(setting);
    database.function(hasEndedFunction, (node) => Number(hasNodeEnded(dirname(file), String(node))));
    return database;
  } catch (error) {
    database?.close();
    throw toStoreError(error, file);
  }
}

export function closed(): RankdError {
  return new RankdError('store_unavailable', "rankd's database is closed.");
}

function noLogPossible(): RankdError {
  return new RankdError(
    'store_unavailable',
    "The file system of rankd's database does not support write-ahead logging.",
    {
      hint: 'put the data directory on a local disk and name it with --data-dir',
    },
  );
}
