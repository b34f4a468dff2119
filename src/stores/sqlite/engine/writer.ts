import { extname } from 'node:path';
import process from 'node:process';
import Database from 'better-sqlite3';
import { systemClock } from '../../../base/clock.ts';
import { RankdError } from '../../../base/errors.ts';
import { workerThreads } from '../../../base/node-modules.ts';
import { openDatabase } from './connection.ts';
import { Statements, type Values } from './statements.ts';

/**
 * The steps of the writing connection, in order: `begin` and `commit` enclose several writes, each from `save` to `keep` or `undo`. If a
 * statement fails, the rest of its write fails with it, and `keep` reverts the write; the others are not affected.
 */
export type Step = { do: 'begin' | 'save' | 'release' | 'undo' | 'commit' } | Statement;

interface Statement {
  do: 'all' | 'run';
  sql: string;
  values: Values;
}

export type Answer = { rows: unknown[] } | { count: number } | { failure: Failure };

/** An error as a message: SQLite's code, if it is one of SQLite's. */
export interface Failure {
  message: string;
  code?: string;
}

export interface WriterOptions {
  file: string;
  /** The newest schema that this rankd works with: nothing is written into a database that a later rankd has migrated. */
  newestSchema?: number;
  /** Every write fails. */
  isReadOnly?: boolean;
}

/** The code of the failure to write into such a database. */
export const outgrownCode = 'RANKD_OUTGROWN';

/** The connection that writes. It waits for the disk: each commit is on it before `commit` is answered. */
export class Writer {
  readonly #database: Database.Database;
  readonly #statements: Statements;
  readonly #newestSchema: number;
  /** The failure of the current write, or of the transaction if SQLite has ended that. */
  #failure: unknown;

  constructor({ file, newestSchema = Number.POSITIVE_INFINITY, isReadOnly = false }: WriterOptions) {
    this.#database = openDatabase(file);
    this.#database.pragma('temp_store = MEMORY'); // savepoints would save each page that they change in a temporary file
    if (isReadOnly) this.#database.pragma('query_only = ON');
    this.#statements = new Statements(this.#database);
    this.#newestSchema = newestSchema;
  }

  take(steps: readonly Step[]): Answer[] {
    return steps.map((step) => {
      try {
        return this.#take(step);
      } catch (error) {
        return { failure: failureOf(error) };
      }
    });
  }

  close(): void {
    this.#database.close();
  }

  #take(step: Step): Answer {
    // After some failures, as on a full disk, SQLite has rolled back the whole transaction.
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
        throw new Database.SqliteError(`the database has schema ${schema}`, outgrownCode);
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

/** Takes steps in the order in which they were given. */
export interface StepTaker {
  take(steps: readonly Step[]): Promise<Answer[]>;
  close(): Promise<void>;
}

/** For a command, which has no other work. */
export function localWriter(options: WriterOptions): StepTaker {
  const writer = new Writer(options);
  return { take: async (steps) => writer.take(steps), close: async () => writer.close() };
}

/**
 * How long other requests may wait for the disk, in milliseconds. A longer wait is allowed once per `oncePerMs`, as on a busy machine. CPU
 * time does not count: on a machine with one core, a thread would save none of it.
 */
const slowMs = 10;
const oncePerMs = 10_000;

/**
 * For a daemon: like `localWriter`, which is fastest, until the disk proves slow. From then on a thread waits for it, so that a slow disk
 * delays changes but no other request.
 */
export function daemonWriter(options: WriterOptions): StepTaker {
  let writer = localWriter(options);
  let isHere = true;
  let isSlow = false;
  let lastSlowAt = Number.NEGATIVE_INFINITY;
  return {
    async take(steps) {
      if (isHere && isSlow && steps[0]?.do === 'begin') {
        isHere = false;
        await writer.close();
        writer = threadWriter(options);
      }
      if (!isHere || steps.at(-1)?.do !== 'commit') return writer.take(steps); // only a commit waits for the disk
      const since = systemClock.monotonic();
      const cpuBefore = cpuMs();
      const answers = await writer.take(steps);
      const until = systemClock.monotonic();
      if (until - since - (cpuMs() - cpuBefore) > slowMs) {
        isSlow ||= until - lastSlowAt < oncePerMs;
        lastSlowAt = until;
      }
      return answers;
    },
    close: () => writer.close(),
  };
}

/** The CPU time of this process, in milliseconds. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** A message to the thread: steps for a database, which it opens for the first of them, or to close it. */
export type WriterMessage = { id: number } & ({ options: WriterOptions; steps: readonly Step[] } | { close: true });

/** A writer whose steps are carried out in a thread. */
export function threadWriter(options: WriterOptions): StepTaker {
  thread ??= new Thread();
  const { ask, nextId: id } = thread;
  return {
    take: (steps) => ask({ id, options, steps }),
    async close() {
      await ask({ id, close: true });
    },
  };
}

/** One for all databases of the process, because a daemon has only one database. */
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

  readonly ask = (message: WriterMessage): Promise<Answer[]> => {
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
