import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { RankdError } from '../../../base/errors.ts';
import { makeFile } from '../../../base/files/new-file.ts';
import { type FreshSecret, mintKey } from '../../../core/api-key.ts';
import type { Key, KeyMode } from '../../../core/model.ts';
import type { MintedKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { newFileName } from '../../input/arguments.ts';
import { keyDocument } from './key-document.ts';

export const outOption = [
  '--out <file>',
  'write the secret to a new file that only you can read, instead of printing it',
  newFileName,
] as const;

/** Writes the secret before the key is made or rotated: one that can't be handed out must not come into force. */
export async function handOut(
  cli: Cli,
  { out, mode }: { out: string | undefined; mode: KeyMode },
  putInForce: (fresh: FreshSecret) => Promise<MintedKey>,
): Promise<MintedKey> {
  const fresh = mintKey(mode);
  if (out === undefined) return putInForce(fresh);
  const path = makeSecretFile(cli, out, fresh);
  return putInForce(fresh).catch((error) => {
    rmSync(path);
    throw error;
  });
}

/** Only its owner can read it. Returns its path. */
export function makeSecretFile(cli: Cli, out: string, { secret }: FreshSecret): string {
  const path = resolve(cli.io.cwd, out);
  makeFile({ path, text: `${secret}\n`, mode: 0o600 });
  return path;
}

/** A secret is shown once: who does not get to see it must hear so. */
export async function printMinted(
  cli: Cli,
  { key, secret }: MintedKey,
  out: string | undefined,
  extra: Record<string, unknown>,
): Promise<void> {
  if (out === undefined) {
    await printSecret(cli, key, { ...extra, key: keyDocument(key), secret }, secret);
    cli.say(`Key "${key.name}" (${key.id}). Keep the secret now: it is not shown again.`);
  } else {
    cli.print({ ...extra, key: keyDocument(key), out }, out);
    cli.say(`Key "${key.name}" (${key.id}); its secret is in ${out}.`);
  }
}

/** Prints a document with a new secret in it. Throws what to do with the key where that could not be written. */
export async function printSecret(
  cli: Cli,
  { name }: Key,
  document: Record<string, unknown>,
  secret: string,
): Promise<void> {
  await cli.printSurely(document, secret).catch((cause) => {
    throw new RankdError(
      'internal',
      `Key "${name}" is in force, but its secret could not be written: ${cause.message}.`,
      {
        cause,
        hint: `rankd key rotate ${name} --overlap 0s for a new secret, or rankd key revoke ${name}`,
      },
    );
  });
}
