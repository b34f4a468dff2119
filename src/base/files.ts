import {
  accessSync,
  closeSync,
  constants,
  createReadStream,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { codeOf, RankdError } from './errors.ts';
import { crypto, fsPromises, readline } from './node-modules.ts';
import { type System, thisSystem } from './system.ts';

interface WholeFile {
  to: string;
  /** The temporary path, in the same directory, used until the file is complete. An existing file there is replaced. */
  unfinished: string;
  mayReplace: boolean;
}

/**
 * Writes a private file atomically, even if the process or the machine crashes: `write` fills an empty temporary file
 * through its path or descriptor, and the file is renamed once its contents are on disk. Returns the result of `write`.
 *
 * On an error, leaves an existing file unchanged. Throws `already_exists` (without `mayReplace`), `usage` (the path is
 * a folder), `no_permission`, `not_found` (the directory) and `store_unavailable` (the disk is full or fails).
 */
export function writeWhole<T>(
  { to, unfinished, mayReplace }: WholeFile,
  write: (unfinished: string, descriptor: number) => T,
): T {
  try {
    if (!mayReplace) refuseExisting(to, replaceable);
    removeDatabase(unfinished);
    const descriptor = openSync(unfinished, 'wx', 0o600);
    try {
      const result = closing(descriptor, () => {
        const result = write(unfinished, descriptor);
        fsyncSync(descriptor);
        return result;
      });
      moveIntoPlace({ to, unfinished, mayReplace });
      return result;
    } finally {
      removeDatabase(unfinished);
    }
  } catch (error) {
    throw asFileError(error, to);
  }
}

/**
 * SQLite creates files with these suffixes next to an open database. If one is left behind, SQLite applies it to the
 * next database with that name.
 */
export const companions = ['-journal', '-wal', '-shm'];

export function removeDatabase(file: string): void {
  for (const suffix of ['', ...companions]) rmSync(file + suffix, { force: true });
}

function moveIntoPlace({ to, unfinished, mayReplace }: WholeFile): void {
  if (mayReplace) renameFile(unfinished, to);
  else linkNew(unfinished, to);
  if (thisSystem.syncsFolders) forceToDisk(dirname(to));
}

/**
 * Gives a file a new name, but never replaces another file. Falls back to a rename on file systems without hard links.
 */
function linkNew(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    refuseExisting(to, replaceable);
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR'].includes(codeOf(error))) throw error;
    renameFile(from, to);
  }
}

/**
 * Syncs a folder to disk. Ignores file systems that can't sync folders, and folders that the user can write to but not
 * open, because the files in them are complete anyway.
 */
function forceToDisk(folder: string): void {
  try {
    const descriptor = openSync(folder, 'r');
    closing(descriptor, () => fsyncSync(descriptor));
  } catch (error) {
    if (!cannotSync.has(codeOf(error))) throw error;
  }
}

const cannotSync = new Set(['EACCES', 'EPERM', 'EINVAL', 'EISDIR', 'EBADF', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP']);

function closing<T>(descriptor: number, work: () => T): T {
  try {
    return work();
  } finally {
    closeSync(descriptor);
  }
}

const replaceable = 'choose a different name, or replace it with --force';

export interface NewFile {
  path: string;
  text: string;
  mode?: number;
}

/**
 * Throws the error that creating the file would cause: `already_exists` (with `hint`), `usage` (the path is a folder),
 * `not_found` (its parent is missing) or `no_permission`.
 */
export function requireRoom(file: string, hint = otherNameHint): void {
  try {
    accessSync(dirname(file), constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw asFileError(cause, file);
  }
  refuseExisting(file, hint);
}

/**
 * Syncs the file to disk. Throws the same errors as `requireRoom`, and `store_unavailable` if the disk is full or
 * fails.
 */
export function makeFile({ path, text, mode = 0o666 }: NewFile): void {
  const file = openNew(path, mode);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } catch (cause) {
    rmSync(path);
    throw asFileError(cause, path);
  } finally {
    closeSync(file);
  }
}

/** Checks that the disk has room by creating and removing a small file. Throws the same errors as `makeFile`. */
export function requireSpace(folder: string): void {
  const path = join(folder, `${prefix}${crypto().randomUUID()}`);
  makeFile({ path, text: '-'.repeat(65_536), mode: 0o600 });
  rmSync(path);
}

function openNew(path: string, mode: number): number {
  try {
    return openSync(path, 'wx', mode);
  } catch (cause) {
    throw codeOf(cause) === 'EEXIST' ? existsError(path, otherNameHint) : asFileError(cause, path);
  }
}

/**
 * Creates the files, then runs `work`. Renames existing files to `.old`. If any step fails, removes the new files and
 * gives the old ones their names back.
 */
export async function withFiles<T>(files: NewFile[], work: () => Promise<T>): Promise<T> {
  const undo: Array<() => void> = [];
  try {
    for (const file of files) makeInPlace(file, undo);
    return await work();
  } catch (error) {
    for (const step of undo) step();
    throw error;
  }
}

function makeInPlace(file: NewFile, undo: Array<() => void>): void {
  const { path } = file;
  if (existsSync(path)) {
    renameFile(path, `${path}.old`);
    undo.unshift(() => renameFile(`${path}.old`, path));
  }
  makeFile(file);
  undo.unshift(() => rmSync(path));
}

const otherNameHint = 'choose a different name, or move that file away';

/**
 * Renames a file, replacing any existing one. On Windows, if another program has the existing file open, blocks the
 * thread and retries for up to a second. Throws Node.js errors.
 */
export function renameFile(
  from: string,
  to: string,
  { system = thisSystem, rename = renameSync }: { system?: System; rename?: typeof renameSync } = {},
): void {
  for (let tries = 1; ; tries += 1) {
    try {
      rename(from, to);
      return;
    } catch (error) {
      if (tries === maxTries || !system.passingRenameErrors.includes(codeOf(error))) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryEveryMs);
    }
  }
}

const maxTries = 20;
const retryEveryMs = 50;

/**
 * Returns the file that a write to the path would replace. Follows only symlinks that belong to `users` (by uid) or
 * root.
 *
 * Throws `no_permission` for another user's symlink, which could point to any of this user's files, and `usage` for
 * anything that is neither a file nor a folder.
 */
export function behindLinks(path: string, users: readonly number[]): string {
  if (!existsSync(path)) return path;
  if (statSync(path).isDirectory()) return path;
  if (!statSync(path).isFile()) throw notFile(path);
  const found = lstatSync(path);
  if (!found.isSymbolicLink()) return realpathSync(path);
  if (![0, ...users].includes(found.uid)) throw foreignLink(path, found.uid);
  return behindLinks(resolve(realpathSync(dirname(path)), readlinkSync(path)), users);
}

function notFile(path: string): RankdError {
  return new RankdError('usage', `${path} is neither a file nor a folder; a backup can't replace it.`, {
    hint: 'choose a different name; `rankd backup -` writes to standard output',
  });
}

function foreignLink(path: string, uid: number): RankdError {
  return new RankdError(
    'no_permission',
    `${path} is a link that belongs to another user (uid ${uid}), so rankd did not follow it.`,
    {
      hint: `choose a name in a folder that only you can write to, or remove the link: ${thisSystem.commands.remove(path)}`,
    },
  );
}

/**
 * Appends text to a file, creates it (mode 0600) if it is missing, and syncs it to disk. Does not create its folder.
 * Throws the errors that `asFileError` returns.
 */
export async function appendTo(file: string, text: string): Promise<void> {
  await fsPromises()
    .appendFile(file, text, { mode: 0o600, flush: true })
    .catch((error) => {
      throw asFileError(error, file);
    });
}

/** Throws a Node.js error if the file can't be read. */
export function linesOf(file: string): AsyncIterable<string> {
  return readline().createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
}

const prefix = 'rankd-scratch-';

/** A temporary directory, for example for a command that must not change the data directory. Disposal removes it. */
export class ScratchDirectory implements Disposable {
  readonly path: string;

  constructor(parent = tmpdir()) {
    this.path = mkdtempSync(join(parent, prefix));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Removes all scratch files and directories, which commands leave behind if they are killed. */
export function removeLeftScratch(parent: string): void {
  for (const name of readdirSync(parent))
    if (name.startsWith(prefix)) rmSync(join(parent, name), { recursive: true, force: true });
}

/** Converts an error from writing a file to one for the operator. Returns other errors unchanged. */
export function asFileError(error: unknown, file: string): unknown {
  const describe = failures[codeOf(error instanceof RankdError ? error.cause : error)];
  if (describe === undefined) return error;
  const { code, message, hint } = describe(file);
  return new RankdError(code, message, { hint, cause: error });
}

/**
 * Converts an unhandled Node.js file system error to one for the operator. Returns other errors unchanged. `file` is
 * the path to name for read errors, which do not include one.
 */
export function inWords(error: unknown, file?: string): unknown {
  const named = Object(error) as NodeJS.ErrnoException & { dest?: string };
  const { code = '', syscall = '', path = file, dest } = named;
  if (typeof path !== 'string' || !syscalls.has(syscall)) return error;
  const ofRead = readCalls.has(syscall) ? readFailures[code] : undefined;
  const { message, hint, ...words } = (ofRead ?? failures[code] ?? otherFailure(code))(dest ?? path);
  return new RankdError(words.code, message, { hint, cause: error });
}

const readCalls = new Set([
  'open',
  'read',
  'access',
  'stat',
  'lstat',
  'statfs',
  'scandir',
  'opendir',
  'readlink',
  'realpath',
  'watch',
]);
const syscalls = new Set([
  ...readCalls,
  ...[
    'mkdir',
    'mkdtemp',
    'rename',
    'unlink',
    'rm',
    'rmdir',
    'link',
    'symlink',
    'chmod',
    'chown',
    'copyfile',
    'truncate',
  ],
]);

/** Throws `already_exists`, or `usage` for a folder. A dangling symlink also counts as existing. */
function refuseExisting(file: string, hint: string): void {
  if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) throw existsError(file, hint);
}

function existsError(file: string, hint: string): RankdError {
  const isFolder = existsSync(file) && statSync(file).isDirectory();
  const message = `${file} already exists; rankd did not change it.`;
  const { code, ...texts } = isFolder ? folder(file) : { code: 'already_exists' as const, message, hint };
  return new RankdError(code, texts.message, { hint: texts.hint });
}

type Failure = (file: string) => { code: RankdError['code']; message: string; hint: string };

const noPermission: Failure = (file) => ({
  code: 'no_permission',
  message: `rankd is not allowed to write ${file}.`,
  hint: `choose a folder that this user can write to, or run rankd as a user that can write to ${dirname(file)}`,
});
const noSpace: Failure = (file) => ({
  code: 'store_unavailable',
  message: `The disk of ${dirname(file)} is full, so rankd did not write ${file}.`,
  hint: `free up space on the file system of ${dirname(file)}, or choose a different folder`,
});
const quotaUsed: Failure = (file) => ({
  code: 'store_unavailable',
  message: `This user's disk quota for ${dirname(file)} is used up, so rankd did not write ${file}.`,
  hint: 'delete files, have the quota raised, or choose a folder on a different disk',
});
const readOnly: Failure = (file) => ({
  code: 'no_permission',
  message: `The file system of ${dirname(file)} is read-only, so rankd did not write ${file}.`,
  hint: 'choose a folder on a different file system, or mount this one read-write',
});
const diskFailed: Failure = (file) => ({
  code: 'store_unavailable',
  message: `The disk of ${dirname(file)} reported an error, so rankd did not write ${file}.`,
  hint: `check the disk of ${dirname(file)}, its quota and the system log, or choose a different folder`,
});
const inUse: Failure = (file) => ({
  code: 'conflict',
  message: `${file} is in use, so rankd did not replace it.`,
  hint: `close the program that is using ${file}, or choose a different name`,
});
const tooManyOpen: Failure = (file) => ({
  code: 'store_unavailable',
  message: `The limit of open files is reached, so rankd did not write ${file}.`,
  hint: 'raise the limit (ulimit -n; LimitNOFILE= in a systemd unit), or find the program that has too many files open',
});
const nameTooLong: Failure = (file) => ({
  code: 'usage',
  message: `The name ${file} is too long for its file system.`,
  hint: 'choose a shorter one',
});
const notSupported: Failure = (file) => ({
  code: 'store_unavailable',
  message: `The file system of ${dirname(file)} does not support an operation that rankd needs, so rankd did not write ${file}.`,
  hint: 'choose a folder on a local disk; network and FAT file systems lack locks, links or sockets',
});
const noFolder: Failure = (file) => ({
  code: 'not_found',
  message: `The folder ${dirname(file)} does not exist.`,
  hint: thisSystem.commands.makeFolder(dirname(file)),
});

const notFolder: Failure = (file) => ({
  code: 'not_found',
  message: `${dirname(file)} can't be a folder: a part of its path is a file.`,
  hint: 'choose a different folder',
});

const folder: Failure = (file) => ({
  code: 'usage',
  message: `${file} is a folder.`,
  hint: `name a new file in it, such as ${join(file, 'NAME')}`,
});

const failures: Record<string, Failure> = {
  EACCES: noPermission,
  EPERM: noPermission,
  EROFS: readOnly,
  EBUSY: inUse,
  EMFILE: tooManyOpen,
  ENFILE: tooManyOpen,
  ENAMETOOLONG: nameTooLong,
  ENOTSUP: notSupported,
  EOPNOTSUPP: notSupported,
  ENOSYS: notSupported,
  ENOLCK: notSupported,
  EINVAL: notSupported,
  ENOSPC: noSpace,
  EDQUOT: quotaUsed,
  SQLITE_FULL: noSpace,
  EFBIG: diskFailed,
  EIO: diskFailed,
  SQLITE_IOERR_WRITE: diskFailed,
  SQLITE_IOERR_TRUNCATE: diskFailed,
  SQLITE_IOERR_FSYNC: diskFailed,
  ENOENT: noFolder,
  ENOTDIR: notFolder,
  EISDIR: folder,
  ERR_FS_EISDIR: (file) => ({
    code: 'conflict',
    message: `${file} is a folder, but rankd needs a file with that name.`,
    hint: `move or remove the folder ${file}`,
  }),
  EEXIST: (file) => ({
    code: 'already_exists',
    message: `${file} already exists; rankd did not change it.`,
    hint: otherNameHint,
  }),
};

const missing: Failure = (file) => ({
  code: 'not_found',
  message: `${file} does not exist.`,
  hint: 'check the path, and that its disk is mounted',
});
const cannotOpen: Failure = (file) => ({
  code: 'no_permission',
  message: `This user is not allowed to open ${file}.`,
  hint: `run rankd as a user that can open it, or give this user access to it and to ${dirname(file)}`,
});

const readFailures: Record<string, Failure> = {
  ENOENT: missing,
  ENOTDIR: missing,
  EACCES: cannotOpen,
  EPERM: cannotOpen,
  EMFILE: (file) => ({
    ...tooManyOpen(file),
    message: `The limit of open files is reached, so rankd did not open ${file}.`,
  }),
  ENFILE: (file) => ({
    ...tooManyOpen(file),
    message: `The limit of open files is reached, so rankd did not open ${file}.`,
  }),
  EISDIR: (file) => ({
    code: 'usage',
    message: `${file} is a folder, not a file.`,
    hint: 'name a file, or move the folder away',
  }),
  EIO: (file) => ({
    code: 'store_unavailable',
    message: `The disk of ${file} reported an error.`,
    hint: 'check the disk and the system log',
  }),
};

function otherFailure(systemCode: string): Failure {
  return (file) => ({
    code: 'store_unavailable',
    message: `${file} can't be used (${systemCode}).`,
    hint: 'check the path, its disk and the system log',
  });
}
