import { closeSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../error-code.ts';
import { thisSystem } from '../system.ts';
import { asFileError, refuseExisting } from './file-error.ts';
import { renameFile } from './rename-file.ts';

export interface WholeFile {
  to: string;
  /** What it is called until it is whole; in the same directory. Whatever is there is removed. */
  unfinished: string;
  mayReplace: boolean;
}

/**
 * Makes a private file that is there whole or not at all, whenever the process or the machine stops: `write` fills an empty
 * one, which gets its name once it is on the disk, by its path or its descriptor. Returns what `write` does.
 *
 * Throws `already_exists` where it may not replace, `no_permission`, `not_found` (the directory) and `store_unavailable`
 * (the disk is full or fails); what was there before is left as it was.
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
  if (mayReplace) renameFile(unfinished, to);
  else linkNew(unfinished, to);
  if (thisSystem.syncsFolders) forceToDisk(dirname(to));
}

/** Gives a file a second name that nothing has yet; on a file system without links it is moved there instead. */
function linkNew(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    refuseExisting(to, replaceable);
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR'].includes(codeOf(error))) throw error;
    renameFile(from, to);
  }
}

function forceToDisk(path: string): void {
  const descriptor = openSync(path, 'r');
  closing(descriptor, () => fsyncSync(descriptor));
}

function closing<T>(descriptor: number, work: () => T): T {
  try {
    return work();
  } finally {
    closeSync(descriptor);
  }
}

const replaceable = 'choose another name, or replace it with --force';
