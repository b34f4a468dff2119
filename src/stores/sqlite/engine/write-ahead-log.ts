import { dirname } from 'node:path';
import type Database from 'better-sqlite3';
import { RankdError } from '../../../base/errors.ts';
import { LogSync } from './log-sync.ts';
import { OpenedFiles } from './opened-files.ts';

/** Makes the commits of one connection durable, by SQLite's write-ahead log (WAL). */
export class WriteAheadLog {
  readonly #database: Database.Database;
  #isRestarted = false;
  #logSync: LogSync | undefined;
  #files: OpenedFiles | undefined;
  #failure: RankdError | undefined;

  constructor(database: Database.Database) {
    this.#database = database;
  }

  /** Switches the database to WAL mode, in which readers and one writer work at the same time. The file keeps the mode. */
  enable(): void {
    if (this.#database.pragma('journal_mode = WAL', { simple: true }) === 'wal') return;
    throw new RankdError('store_unavailable', 'The file system of the database does not support a write-ahead log.', {
      hint: 'put the data directory on a local disk and name it with --data-dir',
    });
  }

  /**
   * From here on `sync` brings commits to the disk, in place of SQLite. With `synchronous = NORMAL`, a commit of SQLite's ends in the
   * memory of the system: every process sees it, but a power cut loses it (https://sqlite.org/pragma.html#pragma_synchronous).
   */
  syncOffThread(): void {
    const { name: file } = this.#database;
    this.#database.pragma('user_version'); // the first read makes the log
    this.#logSync = openLogSync(`${file}-wal`);
    this.#files = new OpenedFiles([file, `${file}-wal`]);
    this.#database.pragma('synchronous = NORMAL');
  }

  get isSyncedOffThread(): boolean {
    return this.#logSync !== undefined;
  }

  /**
   * To be called before each commit. Before the first, it moves what the log holds into the database and restarts the log: it may
   * begin with commits that a daemon could not bring to the disk, and nothing behind those would be safe. If another process is reading from
   * the log just then, the next commit tries again.
   */
  beforeCommit(): void {
    if (this.#isRestarted) return;
    const [{ busy }] = this.#database.pragma('wal_checkpoint(RESTART)') as [{ busy: number }];
    this.#isRestarted = busy === 0;
  }

  /** Resolves once everything that was committed is on the disk, in the files that others open too. Throws as `refuseAfterFailure`. */
  async sync(): Promise<void> {
    try {
      await this.#logSync?.sync();
    } catch (cause) {
      this.#failure ??= diskFailed(this.#database.name, cause);
    }
    this.refuseReplacedFiles();
  }

  /**
   * Throws `store_unavailable` once a commit could not be brought to the disk. It can be read all the same, but nobody may be told of it.
   * Nothing is written after it either: Linux reports a failed write once and then takes the data for written
   * (https://wiki.postgresql.org/wiki/Fsync_Errors).
   */
  refuseAfterFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /**
   * Throws `store_unavailable`, and `refuseAfterFailure` from then on, if the files of the database were removed or replaced. The
   * process would go on with files that nobody else can open any more, and not see what others write.
   */
  refuseReplacedFiles(): void {
    const isOpen = this.#database.open; // the last process that closes a database removes its log
    if (isOpen && this.#files?.wereReplaced()) this.#failure ??= filesReplaced(this.#database.name);
    this.refuseAfterFailure();
  }

  close(): void {
    this.#logSync?.close();
    this.#logSync = undefined;
  }
}

function openLogSync(log: string): LogSync {
  try {
    return new LogSync(log);
  } catch (cause) {
    throw new RankdError('store_unavailable', 'The log of the database of rankd cannot be opened.', {
      hint: `check that ${log} is writable for the user that rankd runs as, and how many files it may open`,
      cause,
    });
  }
}

function diskFailed(database: string, cause: unknown): RankdError {
  const message =
    'The disk that holds the database of rankd reported an error; what was written last may not be on it.';
  return new RankdError('store_unavailable', message, {
    hint: `check the disk of ${dirname(database)}, its room too, and the system log, then start rankd again: until then it neither reads nor writes`,
    cause,
  });
}

function filesReplaced(database: string): RankdError {
  const message =
    'The database of rankd was removed or replaced while rankd ran; what was written last may not be in it.';
  return new RankdError('store_unavailable', message, {
    hint: `stop rankd, see to the files in ${dirname(database)} (\`rankd restore FILE\` puts back a backup), then start it again`,
  });
}
