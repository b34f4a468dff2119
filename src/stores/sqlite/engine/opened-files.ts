import { closeSync, existsSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { RankdError } from '../../../base/errors.ts';

/**
 * The files that a handle works with. A process whose files were removed, replaced or truncated would continue with files that no other
 * process can still open, and not see the writes of others.
 */
export class OpenedFiles {
  readonly #seen = new Map<string, Stats | undefined>();
  #harm: RankdError | undefined;

  /** A file of rankd's only grows while it is open. */
  add(path: string): void {
    this.#seen.set(path, look(path));
  }

  remove(path: string): void {
    this.#seen.delete(path);
  }

  /** Throws `store_unavailable`, from then on always, if a path no longer leads to the file that was opened, or if that is shorter. */
  check(): void {
    this.requireIntact();
    for (const [path, before] of this.#seen) {
      const now = look(path);
      if (!isSameOrGrown(before, now)) this.#refuse(path);
      this.#seen.set(path, now);
    }
  }

  /** Like `check`, after a commit to a write-ahead log: SQLite finds nothing in a log that was emptied while it wrote. */
  checkCommit(log: string): void {
    this.check();
    if (isEmptied(log)) this.#refuse(log);
  }

  /** Throws the error of an earlier `check`. */
  requireIntact(): void {
    if (this.#harm !== undefined) throw this.#harm;
  }

  /** True if `check` finds no problem. */
  get areIntact(): boolean {
    try {
      this.check();
      return true;
    } catch {
      return false;
    }
  }

  #refuse(path: string): never {
    this.#harm = harmed(path);
    throw this.#harm;
  }
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** The system identifies files by device and inode. */
function isSameOrGrown(before: Stats | undefined, now: Stats | undefined): boolean {
  if (before === undefined || now === undefined) return before === now;
  return now.dev === before.dev && now.ino === before.ino && now.size >= before.size;
}

/** True if a log has no header, which SQLite writes first (https://sqlite.org/fileformat2.html#walformat). */
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

function harmed(file: string): RankdError {
  const message =
    "Files of rankd's database were removed, replaced or truncated while rankd was running; the latest writes may be lost.";
  return new RankdError('store_unavailable', message, {
    hint: `stop rankd, check ${basename(file)} and the files next to it in ${dirname(file)} (\`rankd restore FILE\` restores a backup), then start it again`,
  });
}
