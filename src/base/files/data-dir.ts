import { accessSync, chmodSync, chownSync, closeSync, constants, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf } from '../error-code.ts';
import { RankdError } from '../errors.ts';

/**
 * The path of a file that only rankd's user may read, made empty where it is missing; the directory likewise.
 * Throws `no_permission`, `config_invalid` (the path is not a directory) or `store_unavailable`.
 *
 * A file that exists is never opened here: closing any descriptor of a file drops all POSIX locks this process has on
 * it (fcntl(2)), also those of a connection that is open.
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
  return file;
}

/** Whether the file is in the data directory. Throws `no_permission` where this user may not look. */
export function isInDataDir(dataDir: string, name: string): boolean {
  try {
    return statSync(join(dataDir, name), { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw new RankdError('no_permission', `This user may not look into the data directory ${dataDir}.`, {
      hint: `run the command as the user that owns ${dataDir}, or with sudo`,
      cause,
    });
  }
}

/** Takes a file of rankd's away from group and others; no change where it is missing or private. */
export function tightenFile(file: string): void {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined || (stats.mode & 0o077) === 0) return;
  try {
    chmodSync(file, 0o600);
  } catch (cause) {
    throw new RankdError('no_permission', `${file} can be read by other users and rankd may not change that.`, {
      hint: `run \`chmod 600 ${file}\` as its owner`,
      cause,
    });
  }
}

/** With its parents. mkdirSync's own `recursive` never returns where a parent is there and yet ENOENT is answered, as below /proc. */
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

/** What root makes is for the user that the daemon runs as, to whom `model` belongs. */
export function takeOwner(file: string, model: string): void {
  const { uid, gid } = statSync(model);
  const own = statSync(file);
  if (own.uid !== uid || own.gid !== gid) chownSync(file, uid, gid);
}

const rootId = 0;

function createIfMissing(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    if (statSync(file).uid === rootId) takeOwner(file, dirname(file));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

function dataDirError(cause: unknown, dataDir: string): RankdError {
  const { code, path = dataDir } = Object(cause) as { code?: string; path?: string };
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return new RankdError('no_permission', `rankd may not write to ${path}.`, {
        hint: `run rankd as the user that owns ${path} and may write to it, or name another directory with --data-dir`,
        cause,
      });
    case 'EROFS':
      return new RankdError('no_permission', `The data directory ${dataDir} is on a read-only file system.`, {
        hint: `mount the file system of ${dataDir} writable, or name another directory with --data-dir`,
        cause,
      });
    case 'EEXIST':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENAMETOOLONG':
      return new RankdError('config_invalid', `The data directory ${dataDir} is not a directory.`, {
        hint: 'name a directory with --data-dir',
        cause,
      });
    case 'ENOENT': // what was missing was made, so a link on the way leads nowhere (a disk that is not mounted?), or it is below /proc
      return new RankdError(
        'store_unavailable',
        `The data directory ${dataDir} is a link to what does not exist, or where none can be made.`,
        {
          hint: `make what ${dataDir} links to, or name another directory with --data-dir`,
          cause,
        },
      );
    default:
      return new RankdError('store_unavailable', `The data directory ${dataDir} cannot be used.`, {
        hint: `check that ${dataDir} can be made and that its disk has room`,
        cause,
      });
  }
}
