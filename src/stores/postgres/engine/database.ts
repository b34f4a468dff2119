import { systemClock } from '../../../base/clock.ts';
import { isRankdError, RankdError } from '../../../base/errors.ts';
import type { ServerAddress } from '../../../base/net.ts';
import type { ChainLink } from '../../../core/audit.ts';
import type {
  Bindings,
  Reader,
  Database as StoreDatabase,
  Transaction as StoreTransaction,
} from '../../sql/database.ts';
import { KnownCluster } from '../known-cluster.ts';
import type { ClockReading } from '../server-clock.ts';
import { Link, type Session } from './link.ts';
import { isLost, isRetryable, toStoreError } from './postgres-error.ts';
import { postgresDialect } from './statements.ts';

export interface DatabaseOptions {
  onClockReading?: ((reading: ClockReading) => void) | undefined;
  cluster?: KnownCluster | undefined;
}

type Job = 'read' | 'snapshot' | 'write' | 'work' | 'beat';

/**
 * A handle on a database. Each kind of job has its own connection, opened on first use, so that no read waits for a
 * transaction, and no transaction waits for a statement that is blocked on a lock. The handle does not rely on session
 * state, and throws only RankdErrors.
 */
export class Database implements StoreDatabase {
  readonly sql = postgresDialect;
  readonly address: ServerAddress;
  readonly onClockReading: (reading: ClockReading) => void;
  /** The newest audit event that this handle has seen. */
  lastHead: ChainLink | undefined;
  /**
   * The id of the session whose writes advance `lastHead`. A new session may reach a server that lacks some commits, so
   * its writes do not advance it until a heartbeat has compared the heads.
   */
  #lastComparedSession = 0;
  /** The id of the session that made the last write. */
  #lastWriteSession = 0;
  /** True after a failed write, for example because the disk is full. The caller resets it once a write succeeds. */
  hasFailedToWrite = false;
  readonly #links: Readonly<Record<Job, Link>>;
  #lastRead: Promise<unknown> = Promise.resolve();
  #lastWrite: Promise<unknown> = Promise.resolve();

  constructor(address: ServerAddress, { onClockReading = () => undefined, cluster }: DatabaseOptions = {}) {
    this.address = address;
    this.onClockReading = onClockReading;
    const known = cluster ?? new KnownCluster(address);
    const options = { onClockReading, checkCluster: (found: string) => known.check(found) };
    const link = () => new Link(address, options);
    this.#links = { read: link(), snapshot: link(), write: link(), work: link(), beat: link() };
  }

  async get<Row extends object>(sql: string, bindings?: Bindings): Promise<Row | undefined> {
    return (await this.all<Row>(sql, bindings))[0];
  }

  async all<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]> {
    return (await this.ask<Row>(sql, bindings)).rows;
  }

  /** Runs a query, and retries it once on a new connection if the connection breaks within `retryWithinMs`. */
  async ask<Row extends object>(sql: string, bindings?: Bindings): Promise<{ rows: Row[]; sessionId: number }> {
    const ask = async () => {
      const session = await this.#links.read.session();
      return { rows: (await session.sendAlone<Row>(sql, bindings)).rows, sessionId: session.id };
    };
    const askedAt = systemClock.monotonic();
    const mayRetry = () => systemClock.monotonic() - askedAt < retryWithinMs;
    return this.#guard(() => ask().catch((error) => (isLost(error) && mayRetry() ? ask() : Promise.reject(error))));
  }

  async overriddenSettings(): Promise<readonly string[]> {
    return (await this.#links.read.session()).overridden;
  }

  /**
   * Resolves with true behind a pooler: the process id that a pooler reports to a new client is not that of the server
   * process that runs the statements.
   */
  async isPooled(): Promise<boolean> {
    const session = await this.#links.read.session();
    const { rows } = await this.#guard(() => session.send<{ pid: number }>('SELECT pg_backend_pid() AS pid'));
    return rows[0]?.pid !== session.serverPid;
  }

  async work<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]> {
    return this.#guard(async () => (await (await this.#links.work.session()).sendAlone<Row>(sql, bindings)).rows);
  }

  /** A reader whose statements run after those already passed to `work`. */
  get afterWork(): Reader {
    const all: Reader['all'] = (sql, bindings) => this.work(sql, bindings);
    return {
      sql: this.sql,
      all,
      get: async <Row extends object>(sql: string, bindings?: Bindings) => (await all<Row>(sql, bindings))[0],
    };
  }

  /**
   * Runs a heartbeat's statement on a separate connection, so that no other work delays it. Does not retry if the
   * connection breaks.
   */
  async beat<Row extends object>(sql: string, bindings?: Bindings): Promise<{ rows: Row[]; sessionId: number }> {
    const session = await this.#links.beat.session();
    return this.#guard(async () => ({
      rows: (await session.sendAlone<Row>(sql, bindings)).rows,
      sessionId: session.id,
    }));
  }

  /** Runs `work` on a single snapshot. May run it more than once. */
  read<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    const snapshot = () =>
      this.#guard(async () => {
        const session = await this.#links.snapshot.session();
        return new Transaction(session, session.beginReading).complete(work);
      });
    const result = this.#lastRead.then(snapshot, snapshot);
    this.#lastRead = result;
    return result;
  }

  /**
   * Runs `work` in a transaction that locks the audit chain's head. Every `write` on every node takes this lock, so
   * until the commit, no other `write` can change the data that `work` has read. Resolves once the commit is durable.
   */
  write<T>(work: (transaction: WriteTransaction) => Promise<T>): Promise<T> {
    const tryToWrite = async () => {
      const session = await this.#links.write.session();
      const transaction = new WriteTransaction(session);
      try {
        const result = await transaction.complete(work);
        this.#noteHead(await transaction.headIfAny(), session.id);
        return result;
      } catch (error) {
        if (error instanceof LostCommit && (await this.#isStored(error.head))) return error.result as T;
        throw error;
      }
    };
    const write = () => this.#guard(tryToWrite);
    const written = this.#lastWrite.then(write, write);
    written.catch((error: unknown) => {
      if (isRankdError(error, 'store_unavailable')) this.hasFailedToWrite = true;
    });
    this.#lastWrite = written;
    return written;
  }

  /**
   * Begins a comparison of the server's head with `lastHead`. Call it before querying the head, and call the returned
   * function after comparing.
   */
  beginHeadComparison(): () => void {
    const writeSession = this.#lastWriteSession;
    return () => {
      this.#lastComparedSession = writeSession;
    };
  }

  #noteHead(head: ChainLink | undefined, sessionId: number): void {
    this.#lastWriteSession = sessionId;
    if (this.lastHead === undefined) this.#lastComparedSession = sessionId;
    if (head !== undefined && this.#lastComparedSession === sessionId) this.lastHead = head;
  }

  /**
   * Runs `work` in a transaction under an advisory lock, because the database may not yet contain the audit head that
   * `write` locks. May run it more than once.
   */
  underLock<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#guard(async () => {
      const session = await this.#links.write.session();
      const begin = `${session.begin}; SELECT pg_advisory_xact_lock(hashtext('rankd schema'))`;
      return new Transaction(session, begin).complete(work);
    });
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#lastRead, this.#lastWrite]);
    await Promise.all(Object.values(this.#links).map((link) => link.close()));
  }

  /**
   * Determines whether a write whose commit got no response was committed, by looking for its last event. The result is
   * final, because it is read under the lock on the head, which the write holds until it ends. A transaction id would
   * prove nothing, because a server can reuse it after a crash. Throws if the server does not respond.
   */
  async #isStored({ id, hash }: ChainLink): Promise<boolean> {
    const giveUpAt = systemClock.monotonic() + findOutcomeWithinMs;
    for (;;) {
      try {
        const session = await this.#links.write.session();
        return await new Transaction(session, session.begin).complete(async (transaction) => {
          await transaction.get(lockHead);
          return (await transaction.get(eventSql, { id, hash })) !== undefined;
        });
      } catch {
        if (systemClock.monotonic() > giveUpAt) throw unknownOutcome();
      }
      await systemClock.sleep(100);
    }
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await withRetries(work);
    } catch (error) {
      throw toStoreError(error instanceof LostCommit ? error.cause : error, this.address);
    }
  }
}

const findOutcomeWithinMs = 5_000;
/** A query or transaction that has taken longer than this is not retried. */
const retryWithinMs = 1_000;

async function withRetries<T>(work: () => Promise<T>): Promise<T> {
  const since = systemClock.monotonic();
  for (let pauseMs = 5; ; pauseMs = Math.min(80, 2 * pauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (!isRetryable(error) || systemClock.monotonic() - since > retryWithinMs) throw error;
    }
    await systemClock.sleep(pauseMs * (0.5 + Math.random() / 2)); // jitter, to avoid retrying in lockstep
  }
}

const eventSql = `SELECT 1 AS "isKept" FROM rankd.audit_events WHERE id = @id AND hash = decode(@hash, 'hex')`;

function unknownOutcome(): RankdError {
  return new RankdError('store_unavailable', 'The PostgreSQL server did not confirm whether it stored the write.', {
    hint: 'check that the server is running; rankd then determines the outcome',
    retryAfterMs: 1_000,
  });
}

export class Transaction implements StoreTransaction {
  readonly sql = postgresDialect;
  readonly #session: Session;
  readonly #sent: Promise<unknown>[] = [];
  #failure: { error: unknown } | undefined;

  constructor(session: Session, begin: string) {
    this.#session = session;
    session.gather();
    void this.#track(session.sendText(begin));
  }

  async get<Row extends object>(sql: string, bindings?: Bindings): Promise<Row | undefined> {
    return (await this.all<Row>(sql, bindings))[0];
  }

  async all<Row extends object>(sql: string, bindings?: Bindings): Promise<Row[]> {
    this.#session.gather();
    return (await this.#track(this.#session.send<Row>(sql, bindings))).rows;
  }

  async count(sql: string, bindings?: Bindings): Promise<number> {
    this.#session.gather();
    return (await this.#track(this.#session.send(sql, bindings))).count;
  }

  run(sql: string, bindings?: Bindings): void {
    this.count(sql, bindings).catch(() => undefined);
  }

  runText(sql: string): void {
    void this.#track(this.#session.sendText(sql));
  }

  /**
   * Runs `work` and commits its writes; rolls back if it throws or a statement fails. Throws the first error, as the
   * driver reported it.
   */
  async complete<T>(work: (transaction: this) => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await work(this);
    } catch (error) {
      this.#session.sendText('ROLLBACK').catch(() => undefined);
      throw this.#failure?.error ?? error;
    }
    const committed = this.#session.sendText('COMMIT');
    await Promise.allSettled([...this.#sent, committed]);
    // If the connection breaks, the responses to earlier statements may be lost along with the commit's.
    if (this.#failure !== undefined && !isLost(this.#failure.error)) throw this.#failure.error;
    try {
      const { command } = await committed;
      if (command !== 'COMMIT') throw new TypeError(`a transaction ended in ${command}`);
    } catch (error) {
      throw isLost(error) ? this.lost(error, result) : error;
    }
    return result;
  }

  /** Returns the error to throw if the commit got no response. */
  protected lost(error: unknown, _result: unknown): unknown {
    return error;
  }

  #track<T>(answer: Promise<T>): Promise<T> {
    this.#sent.push(answer);
    answer.catch((error: unknown) => {
      this.#failure ??= { error };
    });
    return answer;
  }
}

class LostCommit extends Error {
  /** The last event that the transaction appended. */
  readonly head: ChainLink;
  readonly result: unknown;

  constructor(head: ChainLink, result: unknown, cause: unknown) {
    super('the commit got no response', { cause });
    this.head = head;
    this.result = result;
  }
}

export class WriteTransaction extends Transaction {
  readonly #head: Promise<ChainLink | undefined>;
  #newHead: ChainLink | undefined;

  constructor(session: Session) {
    super(session, session.begin);
    this.#head = this.get<ChainLink>(lockHead);
    this.#head.catch(() => undefined);
  }

  /** Resolves with the newest audit event, which may be one that this transaction has appended. */
  async head(): Promise<ChainLink> {
    const head = this.#newHead ?? (await this.#head);
    if (head === undefined) {
      throw new RankdError('store_unavailable', "The head of rankd's audit chain is missing from the database.", {
        hint: 'run rankd db check, then restore the missing parts from a server backup',
      });
    }
    return head;
  }

  /** Like `head`, but resolves with `undefined` if the audit chain has no head. */
  async headIfAny(): Promise<ChainLink | undefined> {
    return this.#newHead ?? this.#head;
  }

  moveHead(head: ChainLink): void {
    this.#newHead = head;
    this.run(moveHead, { ...head });
  }

  protected override lost(error: unknown, result: unknown): unknown {
    // Without an event, there is no way to look up the outcome.
    return this.#newHead === undefined ? error : new LostCommit(this.#newHead, result, error);
  }
}

const lockHead = `${postgresDialect.chainEnd} FOR UPDATE`;
const moveHead = `UPDATE rankd.audit_head SET last_id = @id, hash = decode(@hash, 'hex')`;

export async function onDatabase<T>(
  address: ServerAddress,
  work: (db: Database) => Promise<T>,
  cluster?: KnownCluster,
): Promise<T> {
  const db = new Database(address, { cluster });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}
