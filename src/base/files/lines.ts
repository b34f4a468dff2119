import { createReadStream } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { asFileError } from './file-error.ts';

/** Adds text at the end of a file and waits for the disk. The file is made (0600) if it is missing, its folder is not. Throws as `asFileError`. */
export async function appendTo(file: string, text: string): Promise<void> {
  await appendFile(file, text, { mode: 0o600, flush: true }).catch((error) => {
    throw asFileError(error, file);
  });
}

/** The lines of a file, whatever its size. Throws what Node throws if it can't be read. */
export function linesOf(file: string): AsyncIterable<string> {
  return createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
}
