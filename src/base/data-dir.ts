import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { codeOf, RankdError } from './errors.ts';
import { asFileError } from './files.ts';
import { ownerOf, type SystemUser, thisSystem } from './system.ts';

/**
 * Returns the path of a file in the data directory. If the directory or the file is missing, creates it, accessible
 * only to this user. Throws `no_permission`, `config_invalid` (the path is not a directory or is too long, or the file
 * is a symlink) or `store_unavailable`.
 *
 * Never opens an existing file: when a process closes any descriptor of a file, it loses all of its POSIX locks on that
 * file (fcntl(2)), including the locks of an open connection.
 */
export function privateFile(dataDir: string, name: string): string {
  const file = join(dataDir, name);
  try {
    makeDirectory(dataDir);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    createIfMissing(file);
    accessSync(file, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw dataDirError(error, dataDir);
  }
  refuseLink(file);
  return file;
}

/** A symlink's target can belong to another user. */
export function refuseLink(file: string): void {
  if (!lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new RankdError('config_invalid', `${file} is a link, but rankd's files must be in the data directory itself.`, {
    hint: `replace the link with the file that it points to, or pass the directory of that file with --data-dir`,
  });
}

/**
 * Ensures that only this user and root can write to the data directory, because an attacker could replace the database
 * with one that contains the attacker's keys. If this user owns the directory, others can access it, and it contains
 * only rankd's files, makes it private, and returns true if that took effect. Throws `no_permission` if another user
 * owns the directory, or if others can write to it and rankd does not make it private.
 */
export function restrictToOwner(dataDir: string, user: SystemUser): boolean {
  const found = openDirectory(dataDir);
  if (found === undefined) return false; // if it is missing or unusable, opening the store reports that
  try {
    const { uid, mode } = fstatSync(found);
    if (uid !== user.uid && uid !== rootId) throw foreign(dataDir, uid);
    if ((mode & 0o077) === 0) return false;
    const mayRestrict = uid === user.uid && readdirSync(dataDir).every((name) => ownName.test(name));
    if (isOnReadOnlyFileSystem(dataDir)) return false;
    if (mayRestrict) return restrictFolder(found, dataDir);
    if ((mode & 0o022) !== 0) throw open(dataDir);
    return false;
  } finally {
    closeSync(found);
  }
}

/**
 * Makes the directory private. Throws `no_permission` if that fails, or if others can still write to the directory
 * because the file system ignores modes, as a Windows drive under WSL does. Returns false if others can still read it.
 */
function restrictFolder(descriptor: number, dataDir: string): boolean {
  let cause: unknown;
  try {
    fchmodSync(descriptor, 0o700);
    const { mode } = fstatSync(descriptor);
    if ((mode & 0o022) === 0) return (mode & 0o077) === 0;
  } catch (error) {
    cause = error;
  }
  throw new RankdError(
    'no_permission',
    `Other users can access the data directory ${dataDir}, and rankd can't change its permissions.`,
    {
      hint: 'choose a directory on a file system with Unix permissions, such as one in your home folder: --data-dir DIR',
      cause,
    },
  );
}

const rootId = 0;

const ownName = /^(rankd\.(db|node$|clusters)|rankd-scratch-|daemon\.|node_\w+\.lock$|simulated-group)/;

function openDirectory(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch {
    return undefined;
  }
}

function foreign(dataDir: string, uid: number): RankdError {
  const message = `The data directory ${dataDir} belongs to another user (uid ${uid}), who could add game keys to it.`;
  return new RankdError('no_permission', message, {
    hint: 'run rankd as that user, or choose a directory of your own with --data-dir',
  });
}

function open(dataDir: string): RankdError {
  const message = `Other users can write to the data directory ${dataDir} and could add game keys to it.`;
  return new RankdError('no_permission', message, {
    hint: `choose a new directory inside it: --data-dir ${thisSystem.quote(join(dataDir, 'rankd'))}`,
  });
}

/** True on a snapshot, for example, or on a disk that the system remounted read-only after errors. */
export function isOnReadOnlyFileSystem(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return codeOf(error) === 'EROFS';
  }
}

export function refuseReadOnlyFileSystem(dataDir: string): void {
  if (isOnReadOnlyFileSystem(dataDir)) throw dataDirError({ code: 'EROFS' }, dataDir);
}

/** Throws `no_permission` if this user is not allowed to check. */
export function isInDataDir(dataDir: string, name: string): boolean {
  try {
    return statSync(join(dataDir, name), { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new RankdError('no_permission', `This user is not allowed to read the data directory ${dataDir}.`, {
      hint: asOwnerOf(dataDir),
      cause,
    });
  }
}

function asOwnerOf(dataDir: string): string {
  try {
    if (thisSystem.hasModes)
      return `run the command as its owner: sudo -u ${thisSystem.quote(ownerOf(dataDir))} rankd …`;
  } catch {
    // the directory is not readable either
  }
  return 'run the command as the user that owns it';
}

/** Removes all permissions of the group and of other users from a file. Does nothing on a system without mode bits. */
export function restrictFile(file: string): void {
  if (!thisSystem.hasModes) return;
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined || (stats.mode & 0o077) === 0) return;
  refuseLink(file);
  try {
    chmodSync(file, 0o600); // by name, because closing a descriptor would release this process's locks on the file
  } catch (cause) {
    throw new RankdError(
      'no_permission',
      `${file} can be read by other users, and rankd is not allowed to change its permissions.`,
      {
        hint: `run \`${thisSystem.commands.restrictFile(file)}\` as its owner`,
        cause,
      },
    );
  }
}

/**
 * Creates the directory and its parents. With `recursive`, mkdirSync would hang below /proc, where creating a folder in
 * an existing parent fails with ENOENT.
 */
function makeDirectory(path: string, { hasParent = false } = {}): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) === 'EEXIST' && statSync(path).isDirectory()) return;
    if (codeOf(error) !== 'ENOENT' || hasParent) throw error;
    makeDirectory(dirname(path));
    makeDirectory(path, { hasParent: true });
  }
}

function createIfMissing(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Returns the missing target of a dangling symlink on the path; `undefined` if there is none. */
function brokenLinkTo(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return dirname(path) === path ? undefined : brokenLinkTo(dirname(path));
  if (!found.isSymbolicLink()) return undefined;
  const target = resolve(dirname(path), readlinkSync(path));
  return existsSync(target) ? undefined : target;
}

function dataDirError(cause: unknown, dataDir: string): RankdError {
  const { code, path = dataDir } = Object(cause) as { code?: string; path?: string };
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return new RankdError('no_permission', `rankd is not allowed to write to ${path}.`, {
        hint: `run rankd as a user that can write to ${path}, or choose a different directory with --data-dir`,
        cause,
      });
    case 'EROFS':
      return new RankdError('no_permission', `The data directory ${dataDir} is on a read-only file system.`, {
        hint: `mount it read-write, or copy ${dataDir} to a writable disk and choose the copy with --data-dir`,
        cause,
      });
    case 'ENAMETOOLONG':
      return new RankdError(
        'config_invalid',
        `The path of the data directory ${dataDir} is too long for its file system.`,
        {
          hint: 'choose a shorter path with --data-dir',
          cause,
        },
      );
    case 'EEXIST':
    case 'ENOTDIR':
    case 'ELOOP':
      return new RankdError('config_invalid', `The data directory ${dataDir} is not a directory.`, {
        hint: 'choose a directory with --data-dir or RANKD_DATA_DIR',
        cause,
      });
    case 'ENOENT': {
      // rankd creates missing folders, so the path must be below /proc or contain a dangling symlink, e.g. to an
      // unmounted disk.
      const link = brokenLinkTo(dataDir);
      if (link === undefined)
        return new RankdError('store_unavailable', `rankd cannot create a folder at ${dataDir}.`, {
          hint: 'choose a different directory with --data-dir or RANKD_DATA_DIR',
          cause,
        });
      return new RankdError(
        'store_unavailable',
        `The data directory ${dataDir} points to ${link}, which does not exist.`,
        {
          hint: `create ${link} (is its disk mounted?), or name a different directory with --data-dir`,
          cause,
        },
      );
    }
    default: {
      const described = asFileError(cause, path);
      if (described instanceof RankdError) return described;
      return new RankdError(
        'store_unavailable',
        `The data directory ${dataDir} cannot be used${code ? ` (${code})` : ''}.`,
        {
          hint: `check that ${dataDir} can be created and that its disk has free space`,
          cause,
        },
      );
    }
  }
}
