import { readSync, writeSync } from 'node:fs';

/** Appends all that is left to read of one open file to another. */
export function copyBytes(from: number, to: number): void {
  const chunk = Buffer.allocUnsafe(256 * 1024);
  for (let length = readSync(from, chunk); length > 0; length = readSync(from, chunk)) {
    for (let written = 0; written < length; ) written += writeSync(to, chunk, written, length - written);
  }
}
