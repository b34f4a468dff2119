import { resolve } from 'node:path';
import { codeOf, type ErrorCode, RankdError } from '../../base/errors.ts';
import { readAtMost } from '../../base/read-file.ts';
import { placesIn, usersIn } from '../../usecases/pasted-list.ts';
import type { Io } from '../io.ts';

/**
 * Collects the place ids from the arguments and from `--file`, without duplicates. Throws `usage` if there are none,
 * and the same errors as `placesIn` and `readInput`.
 */
export async function readIds(io: Io, { ids, file }: { ids: number[]; file: string | undefined }): Promise<number[]> {
  const listed = file === undefined ? [] : placesIn(await readInput(io, file), file === '-' ? 'standard input' : file);
  const all = [...new Set([...ids, ...listed])];
  if (all.length > 0) return all;
  throw new RankdError('usage', 'No id was given.', {
    hint: 'name ids as arguments, or one on each line of a file, with --file FILE',
  });
}

export async function readUsers(io: Io, file: string): Promise<ReturnType<typeof usersIn>> {
  return usersIn(await readInput(io, file), file === '-' ? 'standard input' : file);
}

/**
 * Reads a file; `-` is standard input. Throws `not_found`, `no_permission`, or `usage` for a folder, a file that is too
 * large, or text with NUL characters, which is probably UTF-16.
 */
export async function readInput(io: Io, file: string): Promise<string> {
  const text = file === '-' ? await io.readStdin() : readText(io, file);
  if (!text.includes('\0')) return text;
  throw new RankdError('usage', `${file === '-' ? 'Standard input' : file} is not UTF-8 text; it looks like UTF-16.`, {
    hint: 'save it as UTF-8; in PowerShell: Out-File -Encoding utf8',
  });
}

/** Enough for five million user ids. */
const maxBytes = 64_000_000;

function readText(io: Io, file: string): string {
  try {
    return readAtMost(resolve(io.cwd, file), maxBytes).toString();
  } catch (cause) {
    const [code, flaw, hint] = unreadable[codeOf(cause)] ?? ['no_permission', "can't be read", otherFile];
    throw new RankdError(code, `${file} ${flaw}.`, { cause, hint });
  }
}

const otherFile = 'name a readable file, or - for standard input';
const missing: Unreadable = ['not_found', 'does not exist', otherFile];

type Unreadable = [code: ErrorCode, flaw: string, hint: string];

const unreadable: Partial<Record<string, Unreadable>> = {
  ENOENT: missing,
  ENOTDIR: missing,
  EISDIR: ['usage', 'is a folder', 'name a file in it, or - for standard input'],
  EFBIG: ['usage', `has more than ${maxBytes} bytes, the most that rankd reads`, 'name the right file, or split it'],
};
