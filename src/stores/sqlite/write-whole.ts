import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../../error-code.ts';
import { RankdError } from '../../errors.ts';

export interface WholeFile {
  to: string;
  /** What it is called until it is whole; in the same directory. Whatever is there is removed. */
  unfinished: string;
  mayReplace: boolean;
}

/**
 * Makes a private file that is there whole or not at all, whenever the process or the machine stops: `write` fills an empty
 * one, which gets its name once it is on the disk. Returns what `write` does.
 *
 * Throws `already_exists` where it may not replace, `no_permission`, `not_found` (the directory) and `store_unavailable`
 * (the disk is full or fails); what was there before is left as it was.
 */
export function writeWhole<T>({ to, unfinished, mayReplace }: WholeFile, write: (unfinished: string) => T): T {
  try {
    if (!mayReplace && existsSync(to)) throw alreadyThere(to, replaceable);
    removeDatabase(unfinished);
    closeSync(openSync(unfinished, 'wx', 0o600));
    try {
      const result = write(unfinished);
      forceToDisk(unfinished, 'r+');
      giveName({ to, unfinished, mayReplace });
      return result;
    } finally {
      removeDatabase(unfinished);
    }
  } catch (error) {
    throw asFileError(error, to);
  }
}

/** What SQLite keeps beside a database while it works on it; left behind, it would be applied to the next file of that name. */
export const companions = ['-journal', '-wal', '-shm'];

export function removeDatabase(file: string): void {
  for (const suffix of ['', ...companions]) rmSync(file + suffix, { force: true });
}

function giveName({ to, unfinished, mayReplace }: WholeFile): void {
  if (mayReplace) renameSync(unfinished, to);
  else linkNew(unfinished, to);
  forceToDisk(dirname(to), 'r');
}

/** Gives a file a second name that nothing has yet; on a file system without links it is moved there instead. */
function linkNew(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (existsSync(to)) throw alreadyThere(to, replaceable);
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error))) throw error;
    renameSync(from, to);
  }
}

function forceToDisk(path: string, flags: 'r' | 'r+'): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A failure of the file that was to be written, in the operator's words. */
export function asFileError(error: unknown, file: string): unknown {
  const describe = failures[codeOf(error instanceof RankdError ? error.cause : error)];
  if (describe === undefined) return error;
  const { code, message, hint } = describe(file);
  return new RankdError(code, message, { hint, cause: error });
}

type Failure = (file: string) => { code: RankdError['code']; message: string; hint: string };

const noPermission: Failure = (file) => ({
  code: 'no_permission',
  message: `rankd may not write ${file}.`,
  hint: `choose a folder that this user may write to, or run rankd as a user that may write to ${dirname(file)}`,
});
const noSpace: Failure = (file) => ({
  code: 'store_unavailable',
  message: `The disk of ${dirname(file)} is full, so ${file} was not written.`,
  hint: `free space on the file system of ${dirname(file)}, or choose another one`,
});
const diskFailed: Failure = (file) => ({
  code: 'store_unavailable',
  message: `The disk of ${dirname(file)} reported an error, so ${file} was not written.`,
  hint: `check the disk of ${dirname(file)} and its limits, or choose another one`,
});
const noFolder: Failure = (file) => ({
  code: 'not_found',
  message: `There is no folder ${dirname(file)}.`,
  hint: `mkdir -p ${dirname(file)}`,
});

const folder: Failure = (file) => ({
  code: 'usage',
  message: `${file} is a folder.`,
  hint: `name a new file in it, such as ${file.replace(/\/$/, '')}/NAME`,
});

/** By the codes of the operating system, and those of SQLite that only a write can end with. */
const failures: Record<string, Failure> = {
  EACCES: noPermission,
  EPERM: noPermission,
  EROFS: noPermission,
  ENOSPC: noSpace,
  EDQUOT: noSpace,
  SQLITE_FULL: noSpace,
  EFBIG: diskFailed,
  EIO: diskFailed,
  SQLITE_IOERR_WRITE: diskFailed,
  SQLITE_IOERR_TRUNCATE: diskFailed,
  SQLITE_IOERR_FSYNC: diskFailed,
  ENOENT: noFolder,
  ENOTDIR: noFolder,
  EISDIR: folder,
};

const replaceable = 'choose another name, or replace it with --force';

/** What is in the place of a new file: `already_exists`, or `usage` for a folder. */
export function alreadyThere(file: string, hint: string): RankdError {
  const isFolder = statSync(file, { throwIfNoEntry: false })?.isDirectory();
  const message = `${file} already exists and was left as it is.`;
  const { code, ...told } = isFolder ? folder(file) : { code: 'already_exists' as const, message, hint };
  return new RankdError(code, told.message, { hint: told.hint });
}
