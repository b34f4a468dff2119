import { setImmediate as endOfTurn } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { systemClock } from '../../../base/clock.ts';
import { isRankdError, RankdError } from '../../../base/errors.ts';
import { type ChainLink, chainStart } from '../../../core/audit.ts';
import { schemaTooNew } from '../../schema-errors.ts';
import type { Bindings, Database, Reader, WriteTransaction } from '../../sql/database.ts';
import { Connection, closed, readerOf } from './connection.ts';
import { OpenedFiles } from './opened-files.ts';
import { isLocked, retryEveryMs, toStoreError } from './sqlite-error.ts';
import { sqliteDialect, valuesOf } from './statements.ts';
import {
  type Answer,
  type Failure,
  localWriter,
  type Step,
  type StepRunner,
  schemaTooNewCode,
  type WriterOptions,
} from './writer.ts';

export interface SqliteDatabaseOptions {
  newestSchema?: number;
  isReadOnly?: boolean;
  openWriter?: (options: WriterOptions) => StepRunner;
}

interface Entry {
  work(transaction: Write): Promise<unknown>;
  /** The time on `Clock.monotonic()` at which to stop waiting for another process's lock. */
  giveUpAt: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Settled = { value: unknown } | { error: unknown };

/**
 * A handle on a database file, with separate connections for reads, snapshots and writes. All errors are RankdErrors.
 */
export class SqliteDatabase implements Database {
  readonly sql = sqliteDialect;
  readonly file: string;
  /** The files that must stay in place while this handle is open. */
  readonly files = new OpenedFiles();
  /** True after a failed write, for example because the disk is full. The caller resets it once a write succeeds. */
  hasFailedToWrite = false;
  readonly #options: SqliteDatabaseOptions;
  readonly #reading: Connection;
  #snapshots: Connection | undefined;
  #writer: StepRunner | undefined;
  #waiting: Entry[] = [];
  #writing: Promise<void> | undefined;
  #lastRead: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** Takes ownership of `connection`, and closes it when this handle is closed. */
  constructor(connection: Connection, options: SqliteDatabaseOptions = {}) {
    this.file = connection.file;
    this.#options = options;
    this.#reading = connection;
    for (const suffix of ['', '-wal', '-shm']) this.files.add(this.file + suffix);
  }

  async get<Row extends object>(sql: string, bindings?: Bindings): Promise<Row | undefined> {
    return this.getNow(sql, bindings);
  }

  async all<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]> {
    this.files.requireIntact();
    return this.#reading.all(sql, bindings);
  }

  getNow<Row extends object>(sql: string, bindings?: Bindings): Row | undefined {
    this.files.requireIntact();
    return this.#reading.get(sql, bindings);
  }

  /**
   * A value that changes whenever a connection other than `#reading` writes, including this handle's own writer
   * (https://sqlite.org/pragma.html#pragma_data_version).
   */
  get changeToken(): number {
    this.files.check();
    return this.#reading.get<{ data_version: number }>('PRAGMA data_version')?.data_version ?? 0;
  }

  read<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    const read = async () => {
      this.files.requireIntact();
      if (this.#isClosed) throw closed();
      this.#snapshots ??= new Connection(this.file, this.#reading);
      const snapshots = this.#snapshots;
      snapshots.execute('BEGIN');
      try {
        return await work(readerOf(snapshots));
      } finally {
        snapshots.execute('COMMIT');
      }
    };
    const done = this.#lastRead.then(read, read);
    this.#lastRead = done.catch(() => undefined);
    return done;
  }

  /**
   * Commits all writes of an event-loop turn together (group commit). Writes made during a commit share the next one.
   * Each write is atomic, whatever the outcome of the others.
   */
  write<T>(work: (transaction: WriteTransaction) => Promise<T>): Promise<T> {
    return this.#add((transaction) => {
      transaction.fetchHead();
      return work(transaction);
    });
  }

  async work<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]> {
    const { rows } = await this.#add(async (transaction) => {
      const rows = transaction.later<Row>(sql, bindings);
      rows.catch(() => undefined); // the write's own promise also rejects
      return { rows };
    });
    return rows;
  }

  /** Returns an error if a newer version of rankd has migrated the database. */
  schemaTooNew(): RankdError | undefined {
    const { newestSchema: newest } = this.#options;
    const needed = this.getNow<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0;
    return newest === undefined || needed <= newest ? undefined : schemaTooNew(this.file, { needed, newest });
  }

  requireKnownSchema(): void {
    const cause = this.schemaTooNew();
    if (cause !== undefined) throw unavailable(cause);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writing;
    await this.#lastRead;
    const connections = [this.#writer, this.#snapshots, this.#reading];
    if (!this.files.areIntact) abandoned.push(...connections);
    else for (const connection of connections) await connection?.close();
  }

  #add<T>(work: (transaction: Write) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(closed());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const giveUpAt = systemClock.monotonic() + this.#reading.lockTimeoutMs; // real time, even in tests
    this.#waiting.push({ work, giveUpAt, resolve: resolve as (value: unknown) => void, reject });
    this.#writing ??= this.#run().finally(() => {
      this.#writing = undefined;
    });
    return promise;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await endOfTurn();
      const batch = this.#waiting;
      this.#waiting = [];
      const now = systemClock.monotonic();
      const settled = await this.#settle(batch);
      const retried = batch.filter((entry, index) => !settleEntry(entry, settled[index], now));
      this.#waiting.unshift(...retried);
      if (retried.length > 0) await systemClock.sleep(retryEveryMs);
    }
  }

  /**
   * Commits a batch. If that fails for any reason other than a lock, retries each write separately, so that one bad
   * write cannot make the others fail.
   */
  async #settle(batch: Entry[]): Promise<Settled[]> {
    try {
      return await this.#commit(batch);
    } catch (error) {
      const isUnavailable = isRankdError(error, 'store_unavailable') && !isLocked(error);
      if (isUnavailable) this.hasFailedToWrite = true;
      if (isLocked(error) || batch.length === 1) return batch.map(() => ({ error }));
      const settled: Settled[] = [];
      for (const entry of batch) settled.push(...(await this.#settle([entry])));
      return settled;
    }
  }

  async #commit(batch: Entry[]): Promise<Settled[]> {
    this.files.check();
    this.#writer ??= this.#openWriter();
    const queue = new StepQueue(this.#writer, (failure) => this.#errorOf(failure));
    queue.push({ do: 'begin' });
    const outcomes: Promise<Settled>[] = [];
    for (const { work } of batch) {
      queue.push({ do: 'save' });
      const transaction = new Write(queue);
      try {
        const value = await work(transaction);
        outcomes.push(
          queue
            .add({ do: 'release' })
            .then((answer) => ('failure' in answer ? { error: this.#errorOf(answer.failure) } : { value })),
        );
      } catch (error) {
        queue.push({ do: 'undo' });
        outcomes.push(Promise.resolve({ error }));
      }
    }
    queue.checked(await queue.send({ do: 'commit' }));
    this.files.checkCommit(`${this.file}-wal`);
    return Promise.all(outcomes);
  }

  #openWriter(): StepRunner {
    const { openWriter = localWriter, ...options } = this.#options;
    return openWriter({ file: this.file, ...options });
  }

  #errorOf({ message, code }: Failure): RankdError {
    if (code === undefined) return toStoreError(new Error(message), this.file);
    const later = code === schemaTooNewCode ? this.schemaTooNew() : undefined;
    return later !== undefined ? unavailable(later) : toStoreError(new Sqlite.SqliteError(message, code), this.file);
  }
}

/**
 * Connections to files that were removed, replaced or truncated. They stay open until the process ends, because closing
 * one would merge its log into the database and delete the log, which can contain later writes by other processes.
 * `process.exit` does not close them.
 */
const abandoned: unknown[] = [];

function unavailable(cause: RankdError): RankdError {
  return new RankdError('store_unavailable', cause.message, { hint: cause.hint, cause });
}

/** Settles a write. Returns false, without settling it, if the database was locked and there is still time to retry. */
function settleEntry({ resolve, reject, giveUpAt }: Entry, settled: Settled | undefined, now: number): boolean {
  if (settled === undefined) return false;
  if ('value' in settled) resolve(settled.value);
  else if (isLocked(settled.error) && now < giveUpAt) return false;
  else reject(settled.error);
  return true;
}

/** Sends steps to the writer in batches: a `send` also sends all steps added before it. */
class StepQueue {
  readonly #writer: StepRunner;
  readonly #errorOf: (failure: Failure) => RankdError;
  #steps: Array<{ step: Step; resolve?(answer: Answer): void }> = [];
  #isSending = false;

  constructor(writer: StepRunner, errorOf: (failure: Failure) => RankdError) {
    this.#writer = writer;
    this.#errorOf = errorOf;
  }

  /** Adds a step whose result is ignored. The next `send` sends it. */
  push(step: Step): void {
    this.#steps.push({ step });
  }

  /** Like `push`, but resolves with the answer, which may be a failure. */
  add(step: Step): Promise<Answer> {
    return new Promise((resolve) => {
      this.#steps.push({ step, resolve });
    });
  }

  send(step: Step): Promise<Answer> {
    const answer = this.add(step);
    if (!this.#isSending) queueMicrotask(() => void this.#flush());
    this.#isSending = true;
    return answer;
  }

  async #flush(): Promise<void> {
    this.#isSending = false;
    const sent = this.#steps;
    this.#steps = [];
    const answers = await this.#writer.run(sent.map(({ step }) => step)).catch(({ message }: Error) => {
      return sent.map((): Answer => ({ failure: { message } }));
    });
    for (const [index, { resolve }] of sent.entries()) resolve?.(answers[index] as Answer);
  }

  checked(answer: Answer): Exclude<Answer, { failure: Failure }> {
    if ('failure' in answer) throw this.#errorOf(answer.failure);
    return answer;
  }

  async rows<Row>(answer: Promise<Answer>): Promise<Row[]> {
    const checked = this.checked(await answer);
    return 'rows' in checked ? (checked.rows as Row[]) : [];
  }
}

/** One write of a group commit. */
class Write implements WriteTransaction {
  readonly sql = sqliteDialect;
  readonly #queue: StepQueue;
  #head: Promise<ChainLink> | undefined;

  constructor(queue: StepQueue) {
    this.#queue = queue;
  }

  async get<Row extends object>(sql: string, bindings?: Bindings): Promise<Row | undefined> {
    return (await this.all<Row>(sql, bindings))[0];
  }

  all<Row extends object>(sql: string, bindings: Bindings = {}): Promise<Row[]> {
    return this.#queue.rows(this.#queue.send({ do: 'all', sql, values: valuesOf(sql, bindings) }));
  }

  /** Like `all`, but sends nothing itself: the next `send` also sends this statement. */
  later<Row extends object>(sql: string, bindings: Bindings = {}): Promise<Row[]> {
    return this.#queue.rows(this.#queue.add({ do: 'all', sql, values: valuesOf(sql, bindings) }));
  }

  async count(sql: string, bindings: Bindings = {}): Promise<number> {
    const answer = this.#queue.checked(await this.#queue.send({ do: 'run', sql, values: valuesOf(sql, bindings) }));
    return 'count' in answer ? answer.count : 0;
  }

  run(sql: string, bindings: Bindings = {}): void {
    this.#queue.push({ do: 'run', sql, values: valuesOf(sql, bindings) });
  }

  fetchHead(): void {
    this.#head = this.get<ChainLink>(this.sql.chainEnd).then((head) => head ?? chainStart);
    this.#head.catch(() => undefined);
  }

  async head(): Promise<ChainLink> {
    return this.#head ?? chainStart;
  }

  moveHead(head: ChainLink): void {
    this.#head = Promise.resolve(head);
  }
}
