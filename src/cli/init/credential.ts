import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { isRankdError, RankdError } from '../../base/errors.ts';
import { requireRoom } from '../../base/files.ts';
import { readAtMost } from '../../base/read-file.ts';
import { flawOfKey } from '../../config/platform-choice.ts';
import { hintOf } from '../../usecases/error-document.ts';
import { asGroupId } from '../input/arguments.ts';
import type { Io } from '../io.ts';
import { printableLines } from '../output/text.ts';

interface Credential {
  secret: string;
  /** An absolute path. */
  file: string;
  isNew: boolean;
}

/**
 * Takes the group and the Roblox key from the flags, or asks for them on the terminal, and checks them with `examine`.
 * If the user typed the key, asks for it again after `platform_credential`; if the user typed the group, asks for it
 * again after `not_found`. `folder` is the folder for a new key file.
 */
export async function obtainCredential<Found>(
  io: Io,
  { group, credentialFile, force }: { group?: number; credentialFile?: string; force?: boolean },
  folder: string,
  examine: (given: { groupId: number; secret: string }) => Promise<Found>,
): Promise<{ groupId: number; credential: Credential; found: Found }> {
  if (!io.isTerminal && (group === undefined || credentialFile === undefined)) {
    throw new RankdError('usage', 'Without a terminal, init needs --group and --credential-file.', {
      hint: 'rankd init --group 4199740 --credential-file ./roblox.key',
    });
  }
  const isNew = credentialFile === undefined || credentialFile === '-';
  const file = isNew ? resolve(folder, 'roblox.key') : resolve(io.cwd, credentialFile);
  if (isNew && !force) requireRoom(file, `use it with --credential-file ${io.system.quote(file)}, or move it away`);
  let groupId = group ?? (await askForGroup(io));
  const tryKey = async (secret: string): Promise<{ secret: string; found: Found }> => {
    try {
      return { secret, found: await examine({ groupId, secret }) };
    } catch (error) {
      if (group !== undefined || !isRankdError(error, 'not_found')) throw error;
      io.stderr(`${printableLines(error.message)}\n`);
      groupId = await askForGroup(io);
      return tryKey(secret);
    }
  };
  const { secret, found } =
    credentialFile === undefined ? await askForKey(io, tryKey) : await tryKey(await readKey(io, credentialFile, file));
  return { groupId, credential: { secret, file, isNew }, found };
}

function askForGroup(io: Io): Promise<number> {
  return ask(io, { question: 'Group id (the number in the address of its page): ', parse: asGroupId });
}

const question = 'Roblox key (Creator Dashboard, API Keys; not shown while you paste it): ';

function askForKey<Seen>(io: Io, tryKey: (secret: string) => Promise<Seen>): Promise<Seen> {
  const hidden = { ask: (question: string) => io.askHidden(question), stderr: (text: string) => io.stderr(text) };
  const parse = (text: string) => {
    const flaw = flawOfKey(text);
    if (flaw === undefined) return tryKey(text).catch(askAgain);
    throw new InvalidArgumentError(`${flaw.charAt(0).toUpperCase()}${flaw.slice(1)}.`);
  };
  return ask(hidden, { question, parse });
}

function askAgain(error: unknown): never {
  if (!isRankdError(error, 'platform_credential')) throw error;
  throw new InvalidArgumentError(`${error.message}\ntry: ${hintOf(error)}`);
}

async function readKey(io: Io, credentialFile: string, file: string): Promise<string> {
  const isTyped = credentialFile === '-';
  const key = (isTyped ? await io.readSecret(question) : readSecret(file)).trim();
  const flaw = flawOfKey(key);
  if (flaw === undefined) return key;
  throw new RankdError('config_invalid', `${isTyped ? 'Standard input' : file}: ${flaw}.`, {
    hint: 'copy the key again from the Creator Dashboard (API Keys), without any other text',
  });
}

function readSecret(file: string): string {
  try {
    return readAtMost(file, 1_000_000).toString();
  } catch (cause) {
    throw new RankdError('not_found', `The Roblox key file ${file} can't be read.`, {
      cause,
      hint: 'name a readable file with --credential-file, or - to read the key from standard input',
    });
  }
}

export async function ask<T>(
  io: Pick<Io, 'ask' | 'stderr'>,
  { question, parse, preset = '' }: { question: string; parse: (text: string) => T | Promise<T>; preset?: string },
): Promise<T> {
  for (;;) {
    const text = (await io.ask(printableLines(question))).trim() || preset;
    try {
      return await parse(text);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      io.stderr(`${printableLines(error.message)}\n`);
    }
  }
}
