import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { flawOfKey } from '../../config/platform-key.ts';
import { RankdError } from '../../errors.ts';
import { asGroupId } from '../arguments.ts';
import type { Io } from '../io.ts';
import { requireRoom } from '../new-file.ts';
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
  { group, credentialFile, force }: { group?: number; credentialFile?: string; force?: boolean },
  folder: string,
): Promise<{ groupId: number; credential: Credential }> {
  if (!io.isTerminal && (group === undefined || credentialFile === undefined)) {
    throw new RankdError('usage', 'Off a terminal, init needs --group and --credential-file.', {
      hint: 'rankd init --group 4199740 --credential-file ./roblox.key',
    });
  }
  const isNew = credentialFile === undefined || credentialFile === '-';
  const file = isNew ? resolve(folder, 'roblox.key') : resolve(io.cwd, credentialFile);
  if (isNew && !force) requireRoom(file, `use it with --credential-file ${file}, or move it away`);
  const groupId =
    group ?? (await ask(io, { question: 'Group id (the number in the address of its page): ', parse: asGroupId }));
  const secret = credentialFile === undefined ? await askForKey(io) : await readKey(io, credentialFile, file);
  return { groupId, credential: { secret, file, isNew } };
}

const question = 'Open Cloud API key (not shown): ';

function askForKey(io: Io): Promise<string> {
  const hidden = { ask: (question: string) => io.askHidden(question), stderr: (text: string) => io.stderr(text) };
  const parse = (text: string) => {
    const flaw = flawOfKey(text);
    if (flaw === undefined) return text;
    throw new InvalidArgumentError(`${flaw.charAt(0).toUpperCase()}${flaw.slice(1)}.`);
  };
  return ask(hidden, { question, parse });
}

async function readKey(io: Io, credentialFile: string, file: string): Promise<string> {
  const isTyped = credentialFile === '-';
  const key = (isTyped ? await io.readSecret(question) : readSecret(file)).trim();
  const flaw = flawOfKey(key);
  if (flaw === undefined) return key;
  throw new RankdError('config_invalid', `${isTyped ? 'Standard input' : file}: ${flaw}.`, {
    hint: 'copy the key anew from the Creator Hub; nothing but the key belongs there',
  });
}

function readSecret(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new RankdError('not_found', `The file with the Open Cloud key, ${file}, can't be read.`, {
      cause,
      hint: 'name a file that you can read with --credential-file, or - to type it in on standard input',
    });
  }
}
