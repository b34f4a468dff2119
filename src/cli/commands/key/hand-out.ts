import { rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Key } from '../../../core/model.ts';
import { RankdError } from '../../../errors.ts';
import type { MintedKey } from '../../../usecases/keys.ts';
import { newFileName } from '../../arguments.ts';
import type { Cli } from '../../cli.ts';
import { makeFile } from '../../new-file.ts';
import { keyDocument } from './key-document.ts';

export const outOption = [
  '--out <file>',
  'write the secret to a new file that only you can read, instead of printing it',
  newFileName,
] as const;

export async function handOut(cli: Cli, out: string | undefined, mint: () => Promise<MintedKey>): Promise<MintedKey> {
  return out === undefined ? mint() : writeSecret(cli, out, mint);
}

/** Makes the file before the key: a secret that can't be handed out must not come into being. */
export async function writeSecret<Minted extends { secret: string }>(
  cli: Cli,
  out: string,
  mint: () => Promise<Minted>,
): Promise<Minted> {
  const file = resolve(cli.io.cwd, out);
  makeFile({ path: file, text: '', mode: 0o600 });
  try {
    const minted = await mint();
    writeFileSync(file, `${minted.secret}\n`);
    return minted;
  } catch (error) {
    rmSync(file);
    throw error;
  }
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
