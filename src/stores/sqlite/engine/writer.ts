import { extname } from 'node:path';
import process from 'node:process';
import Database from 'better-sqlite3';
import { systemClock } from '../../../base/clock.ts';
import { RankdError } from '../../../base/errors.ts';
import { workerThreads } from '../../../base/node-modules.ts';
import { openDatabase } from './connection.ts';
import { Statements, type Values } from './statements.ts';

/**
 * A step of the writing connection. A `begin` and a `commit` enclose several writes, each of which starts with `save`
 * and ends with `release` or `undo`. If a statement fails, the rest of its write also fails, and `release` reverts that
 * write without affecting the others.
 */
export type Step = { do: 'begin' | 'save' | 'release' | 'undo' | 'commit' } | Statement;

interface Statement {
  do: 'all' | 'run';
  sql: string;
  values: Values;
}

export type Answer = { rows: unknown[] } | { count: number } | { failure: Failure };

/** An error in a form that can be sent between threads. `code` is SQLite's error code or `schemaTooNewCode`. */
export interface Failure {
  message: string;
  code?: string;
}

export interface WriterOptions {
  file: string;
  /** The newest schema that this rankd supports. Writes to a database with a newer schema fail. */
  newestSchema?: number;
  /** Makes every write fail. */
  isReadOnly?: boolean;
}

/** The error code of a write to a database whose schema is too new. */
export const schemaTooNewCode = 'RANKD_SCHEMA_TOO_NEW';

/** The synchronous writing connection: `run` returns once a commit has been synced to disk. */
export class Writer {
  readonly #database: Database.Database;
  readonly #statements: Statements;
  readonly #newestSchema: number;
  /** The error that made the current write fail, or that made SQLite roll back the whole transaction. */
  #failure: unknown;

  constructor({ file, newestSchema = Number.POSITIVE_INFINITY, isReadOnly = false }: WriterOptions) {
    this.#database = openDatabase(file);
    this.#database.pragma('temp_store = MEMORY'); // by default, savepoints copy changed pages to a temporary file
    if (isReadOnly) this.#database.pragma('query_only = ON');
    this.#statements = new Statements(this.#database);
    this.#newestSchema = newestSchema;
  }

  run(steps: readonly Step[]): Answer[] {
    return steps.map((step) => {
      try {
        return this.#runStep(step);
      } catch (error) {
        return { failure: failureOf(error) };
      }
    });
  }

  close(): void {
    this.#database.close();
  }

  #runStep(step: Step): Answer {
    // After some errors, such as a full disk, SQLite rolls back the whole transaction.
    if (step.do !== 'begin' && this.#failure !== undefined && !this.#database.inTransaction) throw this.#failure;
    switch (step.do) {
      case 'begin':
        return this.#begin();
      case 'save':
        this.#failure = undefined;
        return this.#run('SAVEPOINT write');
      case 'release':
        if (this.#failure === undefined) return this.#run('RELEASE write');
        this.#undo();
        throw this.#failure;
      case 'undo':
        return this.#undo();
      case 'commit':
        return this.#commit();
      default:
        return this.#statement(step);
    }
  }

  #begin(): Answer {
    try {
      this.#run('BEGIN IMMEDIATE');
      const { user_version: schema } = this.#statements.prepare('PRAGMA user_version').get([]) as {
        user_version: number;
      };
      if (schema > this.#newestSchema)
        throw new Database.SqliteError(`the database has schema ${schema}`, schemaTooNewCode);
      return { count: 0 };
    } catch (error) {
      this.#giveUp(error);
      throw error;
    }
  }

  #statement({ do: kind, sql, values }: Statement): Answer {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      const statement = this.#statements.prepare(sql);
      return kind === 'all' && statement.reader
        ? { rows: statement.all(values) }
        : { count: statement.run(values).changes };
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  #commit(): Answer {
    try {
      return this.#run('COMMIT');
    } catch (error) {
      this.#giveUp(error);
      throw error;
    }
  }

  #undo(): Answer {
    this.#run('ROLLBACK TO write');
    return this.#run('RELEASE write');
  }

  #giveUp(error: unknown): void {
    this.#failure = error;
    if (this.#database.inTransaction) this.#run('ROLLBACK');
  }

  #run(sql: string): Answer {
    return { count: this.#statements.prepare(sql).run([]).changes };
  }
}

export function failureOf(error: unknown): Failure {
  const cause = error instanceof RankdError ? error.cause : error;
  return cause instanceof Database.SqliteError
    ? { message: cause.message, code: cause.code }
    : { message: String((error as Error).message) };
}

export interface StepRunner {
  run(steps: readonly Step[]): Promise<Answer[]>;
  close(): Promise<void>;
}

/**
 * Creates a writer on this thread. It suits commands, which have nothing else to do during a write, and daemons with a
 * fast disk.
 */
export function localWriter(options: WriterOptions): StepRunner {
  const writer = new Writer(options);
  return { run: async (steps) => writer.run(steps), close: async () => writer.close() };
}

/**
 * A commit is slow if it takes longer than this. One slow commit per `oncePerMs` is tolerated, because that happens on
 * any busy machine. For `oncePerMs` after a slow commit, CPU time does not count, because a separate thread would not
 * save any on a single-core machine. At other times, rankd does not measure it, because that takes up to 0.07 ms in a
 * busy daemon.
 */
const slowMs = 10;
const oncePerMs = 10_000;

/**
 * Creates a writer for a daemon. It runs on this thread, the fastest option, until the disk proves slow; it then moves
 * to a separate thread, so that commits do not delay other requests.
 */
export function daemonWriter(options: WriterOptions): StepRunner {
  let writer = localWriter(options);
  let isLocal = true;
  let isSlow = false;
  let lastSlowAt = Number.NEGATIVE_INFINITY;
  return {
    async run(steps) {
      if (isLocal && isSlow && steps[0]?.do === 'begin') {
        isLocal = false;
        await writer.close();
        writer = threadWriter(options);
      }
      if (!isLocal || steps.at(-1)?.do !== 'commit') return writer.run(steps); // only a commit waits for the disk
      const since = systemClock.monotonic();
      const followsSlow = since - lastSlowAt < oncePerMs;
      const busyMs = () => (followsSlow ? cpuMs() : 0);
      const busyBefore = busyMs();
      const answers = await writer.run(steps);
      const until = systemClock.monotonic();
      if (until - since - (busyMs() - busyBefore) > slowMs) {
        isSlow ||= followsSlow;
        lastSlowAt = until;
      }
      return answers;
    },
    close: () => writer.close(),
  };
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** A message to the writer thread: steps for a database, which the first message opens, or a request to close it. */
export type WriterMessage = { id: number } & ({ options: WriterOptions; steps: readonly Step[] } | { close: true });

export function threadWriter(options: WriterOptions): StepRunner {
  thread ??= new Thread();
  const { send, nextId: id } = thread;
  return {
    run: (steps) => send({ id, options, steps }),
    async close() {
      await send({ id, close: true });
    },
  };
}

/** The writer thread, shared by all databases in this process. A daemon has only one database. */
let thread: Thread | undefined;

class Thread {
  readonly #worker = new (workerThreads().Worker)(
    new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url),
  );
  readonly #waiting: PromiseWithResolvers<Answer[]>[] = [];
  #failure: Error | undefined;
  #lastId = 0;

  constructor() {
    this.#worker.on('message', (answers: Answer[]) => {
      this.#waiting.shift()?.resolve(answers);
      if (this.#waiting.length === 0) this.#worker.unref();
    });
    this.#worker.on('error', (error: Error) => this.#fail(error));
    this.#worker.on('exit', () => this.#fail(new Error('the writer thread has ended')));
  }

  get nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  readonly send = (message: WriterMessage): Promise<Answer[]> => {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const answers = Promise.withResolvers<Answer[]>();
    this.#waiting.push(answers);
    this.#worker.ref();
    this.#worker.postMessage(message);
    return answers.promise;
  };

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}
