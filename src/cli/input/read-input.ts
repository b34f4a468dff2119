import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { codeOf, RankdError } from '../../base/errors.ts';
import type { Io } from '../io.ts';

/** What is in a file that the user named; `-` is standard input. Throws `not_found`, `no_permission`, or `usage` for a folder. */
export async function readInput(io: Io, file: string): Promise<string> {
  const text = file === '-' ? await io.readStdin() : readText(io, file);
  if (!text.includes('\0')) return text;
  throw new RankdError('usage', `${file === '-' ? 'Standard input' : file} is not UTF-8 text; it looks like UTF-16.`, {
    hint: 'save it as UTF-8; in PowerShell: Out-File -Encoding utf8',
  });
}

function readText(io: Io, file: string): string {
  try {
    return readFileSync(resolve(io.cwd, file), 'utf8');
  } catch (cause) {
    if (codeOf(cause) === 'EISDIR') {
      throw new RankdError('usage', `${file} is a folder.`, {
        cause,
        hint: 'name a file in it, or - for standard input',
      });
    }
    const isMissing = codeOf(cause) === 'ENOENT';
    throw new RankdError(
      isMissing ? 'not_found' : 'no_permission',
      `${file} ${isMissing ? 'does not exist' : "can't be read"}.`,
      {
        cause,
        hint: 'name a readable file, or - for standard input',
      },
    );
  }
}
