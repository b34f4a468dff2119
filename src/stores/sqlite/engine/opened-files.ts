import { closeSync, existsSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { RankdError } from '../../../base/errors.ts';

/**
 * The files that a handle has open. SQLite does not notice if one is removed, replaced or truncated, so later writes
 * could be lost.
 */
export class OpenedFiles {
  readonly #seen = new Map<string, Stats | undefined>();
  #damage: RankdError | undefined;

  /** Adds a file, which must not shrink while it is open. */
  add(path: string): void {
    this.#seen.set(path, statOf(path));
  }

  remove(path: string): void {
    this.#seen.delete(path);
  }

  /**
   * Throws `store_unavailable` if a path no longer leads to the opened file, or if the file has shrunk. From then on,
   * every check throws.
   */
  check(): void {
    this.requireIntact();
    for (const [path, before] of this.#seen) {
      const now = statOf(path);
      if (!isSameOrGrown(before, now)) this.#refuse(path);
      this.#seen.set(path, now);
    }
  }

  /**
   * Checks the files after a commit. Unlike `check`, also throws if the write-ahead log was truncated during the
   * commit, which makes it unreadable.
   */
  checkCommit(log: string): void {
    this.check();
    if (isEmptied(log)) this.#refuse(log);
  }

  requireIntact(): void {
    if (this.#damage !== undefined) throw this.#damage;
  }

  get areIntact(): boolean {
    try {
      this.check();
      return true;
    } catch {
      return false;
    }
  }

  #refuse(path: string): never {
    this.#damage = filesDamaged(path);
    throw this.#damage;
  }
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSameOrGrown(before: Stats | undefined, now: Stats | undefined): boolean {
  if (before === undefined || now === undefined) return before === now;
  return now.dev === before.dev && now.ino === before.ino && now.size >= before.size;
}

/**
 * True if the log starts with zeros instead of the header that SQLite writes first
 * (https://sqlite.org/fileformat2.html#walformat).
 */
function isEmptied(log: string): boolean {
  if (!existsSync(log)) return false;
  const magic = Buffer.alloc(4);
  const descriptor = openSync(log, 'r'); // closing a file drops this process's locks on it, but a log has none
  try {
    return readSync(descriptor, magic) > 0 && magic.readUInt32BE() === 0;
  } finally {
    closeSync(descriptor);
  }
}

function filesDamaged(file: string): RankdError {
  const message =
    "Files of rankd's database were removed, replaced or truncated while rankd was running; the latest writes may be lost.";
  return new RankdError('store_unavailable', message, {
    hint: `stop rankd, check ${basename(file)} and the files next to it in ${dirname(file)} (\`rankd restore FILE\` restores a backup), then start it again`,
  });
}
