import { appendFileSync, closeSync, fstatSync, openSync, readSync, realpathSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isOnReadOnlyFileSystem } from '../../../base/data-dir.ts';
import { RankdError } from '../../../base/errors.ts';
import { asFileError, behindLinks, companions, ScratchDirectory, writeWhole } from '../../../base/files.ts';
import { crypto } from '../../../base/node-modules.ts';
import type { Backup, BackupTarget } from '../../../ports/index.ts';
import { schemaVersion } from '../schema/schema-version.ts';
import { daemonLockName, isNodeName, nodeFileName } from './daemon-lock.ts';
import { examineFile, flawOf, newestRows, newestSchema } from './examine.ts';
import { copyInto, databaseName, onExisting, requireDatabase } from './existing.ts';

/** Implements `StoreOperations.backUp`. Also throws the same errors as `writeWhole`. */
export function backUp({ dataDir, file, mayReplace }: BackupTarget & { dataDir: string }): Backup {
  const to = behindLinks(file, [statSync(requireDatabase(dataDir)).uid]); // follows links owned by rankd's user or root
  refuseOwnFile(dataDir, file);
  refuseOwnFile(dataDir, to);
  const unfinished = `${to}.unfinished-${crypto().randomBytes(4).toString('hex')}`;
  return writeWhole({ to, unfinished, mayReplace }, (copy) => copyVerified(dataDir, copy));
}

/**
 * Implements `StoreOperations.streamBackup`. Sends a temporary copy, unlinked beforehand so that no file is left
 * behind.
 */
export async function streamBackup(dataDir: string, send: (chunk: Uint8Array) => Promise<void>): Promise<Backup> {
  requireDatabase(dataDir);
  using scratch = isOnReadOnlyFileSystem(dataDir) ? new ScratchDirectory() : undefined;
  const file = join(scratch?.path ?? dataDir, `${databaseName}.backup-${crypto().randomBytes(4).toString('hex')}`);
  const { backup, descriptor } = copyNameless(dataDir, file);
  try {
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const length = readSync(descriptor, chunk);
      if (length === 0) return backup;
      await send(chunk.subarray(0, length));
    }
  } finally {
    closeSync(descriptor);
  }
}

const chunkBytes = 256 * 1024;

function copyNameless(dataDir: string, file: string): { backup: Backup; descriptor: number } {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'wx+', 0o600);
    return { backup: copyVerified(dataDir, file), descriptor };
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor);
    throw asFileError(error, file);
  } finally {
    rmSync(file, { force: true });
  }
}

function copyVerified(dataDir: string, to: string): Backup {
  const reached = onExisting(dataDir, (db) => {
    schemaVersion(db, newestSchema);
    const rows = newestRows(db);
    copyInto(db, to);
    return rows;
  });
  const copy = examineFile(to);
  const flaw = flawOf(copy) ?? missingIn(copy.newestRows, reached);
  if (flaw !== undefined) {
    throw new RankdError('store_unavailable', `The backup failed its integrity check and was removed: ${flaw}.`, {
      hint: 'rankd db check',
    });
  }
  appendDigest(to);
  return { schema: copy.schema, newestSchema, rows: copy.rows, bytes: statSync(to).size };
}

/**
 * Describes the first table whose newest row is missing from the copy; `undefined` if there is none. The highest row
 * number never decreases, even if old rows are removed.
 */
function missingIn(copied: Map<string, number>, reached: Map<string, number>): string | undefined {
  const short = [...reached].find(([table, newest]) => (copied.get(table) ?? 0) < newest);
  return short && `it ends before row ${short[1]} of ${short[0]}`;
}

export function refuseOwnFile(dataDir: string, file: string): void {
  if (isOwnFile(dataDir, file)) throw ownFile(file);
}

function isOwnFile(dataDir: string, path: string): boolean {
  return (isOwnName(basename(path)) && isSame(dirname(path), dataDir)) || isSame(path, join(dataDir, databaseName));
}

function ownFile(path: string): RankdError {
  return new RankdError('usage', `${path} is one of rankd's own files; a backup would overwrite it.`, {
    hint: `choose a different name, such as ${join(dirname(path), 'backup.db')}`,
  });
}

function isSame(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false; // the code that opens a missing file reports it
  }
}

function isOwnName(name: string): boolean {
  return ownNames.has(name) || isNodeName(name) || name.startsWith('simulated-group');
}

const ownNames = new Set([
  daemonLockName,
  'daemon.sock',
  'daemon.address',
  nodeFileName,
  'rankd.clusters',
  ...['', ...companions].map((suffix) => databaseName + suffix),
]);

/**
 * The last line of a backup: the SHA-256 of all bytes before it, because SQLite files have no checksums. SQLite reads
 * only the pages that the header counts (https://sqlite.org/fileformat2.html#in_header_database_size), so any SQLite
 * client can still open a backup.
 */
const digestLine = /^rankd backup sha256 ([0-9a-f]{64})\n$/;
const digestLineLength = 'rankd backup sha256 '.length + 64 + 1;

export function appendDigest(file: string): void {
  const digest = withFile(file, (descriptor) => sha256(descriptor, fstatSync(descriptor).size));
  appendFileSync(file, `rankd backup sha256 ${digest}\n`);
}

/**
 * Compares a file with its digest. `none` means that nothing follows the database, as in a copy made by another
 * program. `wrong` means that a byte was changed, or that something other than a digest follows the database.
 */
export function checkDigest(file: string): 'right' | 'wrong' | 'none' {
  return withFile(file, (descriptor) => {
    const { size } = fstatSync(descriptor);
    const last = Buffer.alloc(digestLineLength);
    readSync(descriptor, last, 0, digestLineLength, Math.max(0, size - digestLineLength));
    const [, digest] = digestLine.exec(last.toString('latin1')) ?? [];
    if (digest === undefined) return size % smallestPage === 0 ? 'none' : 'wrong';
    return digest === sha256(descriptor, size - digestLineLength) ? 'right' : 'wrong';
  });
}

/** SQLite's smallest page size; the size of every database file is a multiple of it. */
const smallestPage = 512;

function sha256(descriptor: number, length: number): string {
  const hash = crypto().createHash('sha256');
  const chunk = Buffer.allocUnsafe(1024 * 1024);
  for (let at = 0; at < length; ) {
    const read = readSync(descriptor, chunk, 0, Math.min(chunk.length, length - at), at);
    if (read === 0) break;
    hash.update(chunk.subarray(0, read));
    at += read;
  }
  return hash.digest('hex');
}

function withFile<T>(file: string, work: (descriptor: number) => T): T {
  const descriptor = openSync(file, 'r');
  try {
    return work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
