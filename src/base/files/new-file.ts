import { accessSync, closeSync, constants, existsSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../error-code.ts';
import { alreadyThere, asFileError, refuseExisting } from './file-error.ts';
import { renameFile } from './rename-file.ts';

export interface NewFile {
  /** Absolute. */
  path: string;
  text: string;
  mode?: number;
}

/**
 * Throws what would keep a file from being made there: `already_exists`, `usage` (it is a folder), `not_found` (its folder) or
 * `no_permission`; `hint` is what to do where it exists.
 */
export function requireRoom(file: string, hint = anotherName): void {
  try {
    accessSync(dirname(file), constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw asFileError(cause, file);
  }
  refuseExisting(file, hint);
}

/** Makes a file that was not there, and that is on the disk then. Throws as `requireRoom`, and `store_unavailable` where the disk is full. */
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

function openNew(path: string, mode: number): number {
  try {
    return openSync(path, 'wx', mode);
  } catch (cause) {
    throw codeOf(cause) === 'EEXIST' ? alreadyThere(path, anotherName) : asFileError(cause, path);
  }
}

/** Makes the files, then does `work`. If `work` fails, puts everything back. Renames the files that these replace to `.old`. */
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

const anotherName = 'choose another name, or move that file away';
