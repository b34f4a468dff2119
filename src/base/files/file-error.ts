import { existsSync, lstatSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf } from '../error-code.ts';
import { RankdError } from '../errors.ts';
import { thisSystem } from '../system.ts';

/** A failure of the file that was to be written, in the operator's words. */
export function asFileError(error: unknown, file: string): unknown {
  const describe = failures[codeOf(error instanceof RankdError ? error.cause : error)];
  if (describe === undefined) return error;
  const { code, message, hint } = describe(file);
  return new RankdError(code, message, { hint, cause: error });
}

/** Throws `alreadyThere` where anything has that name, be it a link that leads nowhere. */
export function refuseExisting(file: string, hint: string): void {
  if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) throw alreadyThere(file, hint);
}

/** What is in the place of a new file: `already_exists`, or `usage` for a folder. */
export function alreadyThere(file: string, hint: string): RankdError {
  const isFolder = existsSync(file) && statSync(file).isDirectory();
  const message = `${file} already exists and was left as it is.`;
  const { code, ...told } = isFolder ? folder(file) : { code: 'already_exists' as const, message, hint };
  return new RankdError(code, told.message, { hint: told.hint });
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
  hint: `check the disk of ${dirname(file)}, its quota and the system log, or choose another one`,
});
const inUse: Failure = (file) => ({
  code: 'conflict',
  message: `${file} is in use, so it was not replaced.`,
  hint: `close the program that uses ${file}, or choose another name`,
});
const tooManyOpen: Failure = (file) => ({
  code: 'store_unavailable',
  message: `No more files may be open, so ${file} was not written.`,
  hint: 'raise the limit of open files (ulimit -n; LimitNOFILE= in a systemd unit), or find what holds so many',
});
const nameTooLong: Failure = (file) => ({
  code: 'usage',
  message: `The name ${file} is too long for its file system.`,
  hint: 'choose a shorter one',
});
const notSupported: Failure = (file) => ({
  code: 'store_unavailable',
  message: `The file system of ${dirname(file)} can't do what rankd needs there, so ${file} was not written.`,
  hint: 'choose a folder on a local disk; network and FAT file systems lack locks, links or sockets',
});
const noFolder: Failure = (file) => ({
  code: 'not_found',
  message: `There is no folder ${dirname(file)}.`,
  hint: thisSystem.commands.makeFolder(dirname(file)),
});

const folder: Failure = (file) => ({
  code: 'usage',
  message: `${file} is a folder.`,
  hint: `name a new file in it, such as ${join(file, 'NAME')}`,
});

/** By the codes of the operating system, and those of SQLite that only a write can end with. */
const failures: Record<string, Failure> = {
  EACCES: noPermission,
  EPERM: noPermission,
  EROFS: noPermission,
  EBUSY: inUse,
  EMFILE: tooManyOpen,
  ENFILE: tooManyOpen,
  ENAMETOOLONG: nameTooLong,
  ENOTSUP: notSupported,
  EOPNOTSUPP: notSupported,
  ENOSYS: notSupported,
  ENOLCK: notSupported,
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
