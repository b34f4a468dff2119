import { appendFileSync, closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { crypto } from '../../../base/node-modules.ts';

/**
 * The last line of a backup: the SHA-256 of all bytes before it. SQLite has no checksums of its own. It reads as many pages as its header counts
 * (https://sqlite.org/fileformat2.html#in_header_database_size), so any program that opens a database opens a backup as well.
 */
const line = /^rankd backup sha256 ([0-9a-f]{64})\n$/;
const lineLength = 'rankd backup sha256 '.length + 64 + 1;

/** Adds the digest of a whole file to its end. */
export function appendDigest(file: string): void {
  const digest = withFile(file, (descriptor) => sha256(descriptor, fstatSync(descriptor).size));
  appendFileSync(file, `rankd backup sha256 ${digest}\n`);
}

/**
 * Whether a file is byte by byte what its digest says. `none`: nothing follows the database, as in a copy that another program made.
 * `wrong`: a byte was changed, or what follows the database is no digest.
 */
export function checkDigest(file: string): 'right' | 'wrong' | 'none' {
  return withFile(file, (descriptor) => {
    const { size } = fstatSync(descriptor);
    const last = Buffer.alloc(lineLength);
    readSync(descriptor, last, 0, lineLength, Math.max(0, size - lineLength));
    const [, digest] = line.exec(last.toString('latin1')) ?? [];
    if (digest === undefined) return size % smallestPage === 0 ? 'none' : 'wrong';
    return digest === sha256(descriptor, size - lineLength) ? 'right' : 'wrong';
  });
}

/** The size of a database is a multiple of this, whatever its pages are. */
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
