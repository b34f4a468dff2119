import { closeSync, openSync, readSync } from 'node:fs';

/**
 * Reads a whole file. Throws an error with the code `EFBIG` if the file is longer than `maxBytes` or endless, such as
 * /dev/zero.
 */
export function readAtMost(path: string, maxBytes: number): Buffer {
  const descriptor = openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const chunk = Buffer.allocUnsafe(65_536);
      const read = readSync(descriptor, chunk);
      if (read === 0) return Buffer.concat(chunks);
      length += read;
      if (length > maxBytes) throw Object.assign(new Error(`more than ${maxBytes} bytes`), { code: 'EFBIG' });
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    closeSync(descriptor);
  }
}
