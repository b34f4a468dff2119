import { closeSync, fdatasync, fstatSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { RankdError } from '../../../base/errors.ts';

/**
 * Brings what was committed to the disk, beside the thread of the event loop: with `synchronous = NORMAL`, SQLite leaves its
 * write-ahead log in the system's memory, from where every process reads it, but which a power cut empties
 * (https://sqlite.org/pragma.html#pragma_synchronous).
 */
export class LogSync {
  readonly #database: string;
  /** Open from before the first commit: it is told of every failure after it was opened, whoever else was told. */
  readonly #log: number;
  /** The files that this process has open, as the system numbers them. */
  readonly #opened: readonly string[];
  #latest: Promise<void> = Promise.resolve();
  #failure: RankdError | undefined;
  #isClosed = false;

  constructor(database: string) {
    this.#database = database;
    this.#log = openLog(database);
    this.#opened = [fileNumber(statSync(database)), fileNumber(fstatSync(this.#log))];
  }

  /** Resolves once everything that was committed before is on the disk. Throws as `refuseAfterFailure`. */
  sync(): Promise<void> {
    this.#latest = this.#writeThrough();
    return this.#latest;
  }

  /**
   * Throws `store_unavailable` once anything could not be brought to the disk. What it was can be read all the same, but must not
   * be told; and Linux tells of a failure once and then takes it for written (https://wiki.postgresql.org/wiki/Fsync_Errors), so
   * nothing behind it would be safe.
   */
  refuseAfterFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /**
   * Throws `store_unavailable`, from then on everywhere, where the files were removed or replaced: this process would go on with
   * what nobody else can open any more, and not see what others write.
   */
  refuseOtherFiles(): void {
    const paths = [this.#database, logOf(this.#database)];
    const isOurs = (path: string, index: number) => fileNumber(statSync(path, optional)) === this.#opened[index];
    if (!paths.every(isOurs)) this.#failure ??= notTheseFiles(this.#database);
    this.refuseAfterFailure();
  }

  close(): void {
    this.#isClosed = true;
    const close = () => closeSync(this.#log);
    this.#latest.then(close, close).catch(() => undefined); // nothing depends on it any more
  }

  async #writeThrough(): Promise<void> {
    this.refuseAfterFailure();
    try {
      await writeThrough(this.#log);
    } catch (cause) {
      this.#failure = notOnDisk(this.#database, cause);
      throw this.#failure;
    }
    if (!this.#isClosed) this.refuseOtherFiles(); // who closes a database last removes its log
  }
}

const optional = { throwIfNoEntry: false };

function logOf(database: string): string {
  return `${database}-wal`;
}

function fileNumber(stats: { dev: number; ino: number } | undefined): string {
  return stats === undefined ? 'none' : `${stats.dev}:${stats.ino}`;
}

function openLog(database: string): number {
  try {
    return openSync(logOf(database), 'r+');
  } catch (cause) {
    throw new RankdError('store_unavailable', 'The log of the database of rankd cannot be opened.', {
      hint: `check that ${logOf(database)} is writable for the user that rankd runs as, and how many files it may open`,
      cause,
    });
  }
}

function writeThrough(descriptor: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(descriptor, (error) => (error === null ? resolve() : reject(error)));
  });
}

function notOnDisk(database: string, cause: unknown): RankdError {
  const message =
    'The disk that holds the database of rankd reported an error; what was written last may not be on it.';
  return new RankdError('store_unavailable', message, {
    hint: `check the disk of ${dirname(database)}, its room too, and the system log, then start rankd again: until then it neither reads nor writes`,
    cause,
  });
}

function notTheseFiles(database: string): RankdError {
  const message =
    'The database of rankd was removed or replaced while rankd ran; what was written last may not be in it.';
  return new RankdError('store_unavailable', message, {
    hint: `stop rankd, see to the files in ${dirname(database)} (\`rankd restore FILE\` puts back a backup), then start it again`,
  });
}
