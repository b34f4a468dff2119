import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { RankdError } from '../../errors.ts';
import { asGroupId } from '../arguments.ts';
import type { Io } from '../io.ts';
import { ask } from './questions.ts';

/** The key of the platform, and the file it is in or is to be written to. */
export interface Credential {
  secret: string;
  /** Absolute. */
  file: string;
  isNew: boolean;
}

/** The group and the platform's key, from the flags, else asked for on the terminal. A key that is typed in goes to `folder`. */
export async function obtainCredential(
  io: Io,
  { group, credentialFile }: { group?: number; credentialFile?: string },
  folder: string,
): Promise<{ groupId: number; credential: Credential }> {
  if (!io.isTerminal && (group === undefined || credentialFile === undefined)) {
    throw new RankdError('usage', 'Off a terminal, init needs --group and --credential-file.', {
      hint: 'rankd init --group 4199740 --credential-file ./roblox.key',
    });
  }
  const groupId =
    group ?? (await ask(io, { question: 'Group id (the number in the address of its page): ', parse: asGroupId }));
  if (credentialFile !== undefined && credentialFile !== '-') {
    const file = resolve(io.cwd, credentialFile);
    return { groupId, credential: { secret: readSecret(file), file, isNew: false } };
  }
  const secret = credentialFile === '-' ? await io.readStdin() : await io.askHidden('Open Cloud API key (not shown): ');
  const file = resolve(folder, 'roblox.key');
  if (existsSync(file)) {
    throw new RankdError('already_exists', `${file} exists already and is not overwritten.`, {
      hint: `use it with --credential-file ${file}, or move it away`,
    });
  }
  return { groupId, credential: { secret: secret.trim(), file, isNew: true } };
}

function readSecret(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw new RankdError('not_found', `The file with the Open Cloud key, ${file}, can't be read.`, {
      cause,
      hint: 'name a file that you can read with --credential-file, or - to type it in on standard input',
    });
  }
}
