import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type Database from 'better-sqlite3';
import { RankdError } from '../../../base/errors.ts';
import { LogSync } from './log-sync.ts';
import { OpenedFiles } from './opened-files.ts';

/** Makes the commits of one connection durable, by SQLite's write-ahead log (WAL). */
export class WriteAheadLog {
  readonly #database: Database.Database;
  #isRestarted = false;
  #logSync: LogSync | undefined;
  /** The database with its log and index, and the locks that say who works on it. */
  readonly files = new OpenedFiles();
  #failure: RankdError | undefined;
  #isHarmed = false;

  constructor(database: Database.Database) {
    this.#database = database;
  }

  /** Switches the database to WAL mode, in which readers and one writer work at the same time. The file keeps the mode. */
  enable(): void {
    if (this.#database.pragma('journal_mode = WAL', { simple: true }) !== 'wal') throw noLogPossible();
    this.#database.pragma('user_version'); // the first read makes the log and its index
    for (const suffix of ['', '-wal', '-shm']) this.files.add(this.#database.name + suffix);
  }

  /**
   * From here on `sync` brings commits to the disk, in place of SQLite. With `synchronous = NORMAL`, a commit of SQLite's ends in the
   * memory of the system: every process sees it, but a power cut loses it (https://sqlite.org/pragma.html#pragma_synchronous).
   */
  syncOffThread(): void {
    const { name: file } = this.#database;
    this.#logSync = openLogSync(`${file}-wal`);
    this.files.watch();
    this.#database.pragma('synchronous = NORMAL');
  }

  get isSyncedOffThread(): boolean {
    return this.#logSync !== undefined;
  }

  /**
   * To be called before each commit. Throws as `refuseHarmedFiles`. Before the first commit, it moves what the log holds into the
   * database and restarts the log: it may begin with commits that a daemon could not bring to the disk, and nothing behind those would be
   * safe. If another process is reading from the log just then, the next commit tries again.
   */
  beforeCommit(): void {
    this.refuseHarmedFiles();
    if (this.#isRestarted) return;
    const [{ busy }] = this.#database.pragma('wal_checkpoint(RESTART)') as [{ busy: number }];
    this.#isRestarted = busy === 0;
  }

  /** Resolves once everything that was committed is on the disk, in the files that others open too. Throws as `refuseHarmedFiles`. */
  async sync(): Promise<void> {
    try {
      await this.#logSync?.sync();
    } catch (cause) {
      this.#failure ??= diskFailed(this.#database.name, cause);
    }
    this.#lookForHarm();
    const log = `${this.#database.name}-wal`;
    if (this.#database.open && isEmptied(log)) this.#noteHarm(log);
    this.#refuse();
  }

  /**
   * To be called before the database is used. Throws `store_unavailable` once a commit could not be brought to the disk: it can be read
   * all the same, but nobody may be told of it. Nothing is written after it either: Linux reports a failed write once and then takes the
   * data for written (https://wiki.postgresql.org/wiki/Fsync_Errors). Throws as `refuseHarmedFiles` if the system tells of a change.
   */
  refuseAfterFailure(): void {
    if (this.files.mayDiffer) this.#lookForHarm();
    this.#refuse();
  }

  /**
   * Throws `store_unavailable`, from then on always, if files of the data directory were removed, replaced or cut. The process would go on
   * with files that nobody else can open any more, and not see what others write.
   */
  refuseHarmedFiles(): void {
    this.#lookForHarm();
    this.#refuse();
  }

  /** Returns false if files were removed, replaced or cut: then the database itself must not be closed. */
  close(): boolean {
    this.#lookForHarm();
    this.files.close();
    this.#logSync?.close();
    this.#logSync = undefined;
    return !this.#isHarmed;
  }

  #refuse(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  #lookForHarm(): void {
    const isOpen = this.#database.open; // the last process that closes a database removes its log
    const harmed = isOpen ? this.files.firstHarmed() : undefined;
    if (harmed !== undefined) this.#noteHarm(harmed);
  }

  #noteHarm(file: string): void {
    this.#isHarmed = true;
    this.#failure ??= filesHarmed(file);
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
    hint: `check the disk of ${dirname(database)}, how full it is, and the system log, then start rankd again; until then it neither reads nor writes`,
    cause,
  });
}

/**
 * True if the log has no header: somebody emptied it, and what was written since stands behind a gap. SQLite writes the header first
 * (https://sqlite.org/fileformat2.html#walformat), and finds nothing in a log without one.
 */
function isEmptied(log: string): boolean {
  if (!existsSync(log)) return false;
  const magic = Buffer.alloc(4);
  const descriptor = openSync(log, 'r'); // no process has a lock on a log, which closing it would drop
  try {
    return readSync(descriptor, magic) > 0 && magic.readUInt32BE() === 0;
  } finally {
    closeSync(descriptor);
  }
}

function noLogPossible(): RankdError {
  return new RankdError('store_unavailable', 'The file system of the database does not support a write-ahead log.', {
    hint: 'put the data directory on a local disk and name it with --data-dir',
  });
}

function filesHarmed(file: string): RankdError {
  const message =
    'Files of the database of rankd were removed or replaced, or cut, while rankd ran; what was written last may not be in it.';
  return new RankdError('store_unavailable', message, {
    hint: `stop rankd, see to ${basename(file)} and what is beside it in ${dirname(file)} (\`rankd restore FILE\` puts back a backup), then start it again`,
  });
}
