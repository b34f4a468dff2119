import { rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { MintedKey } from '../../../usecases/keys.ts';
import type { Cli } from '../../cli.ts';
import { makeFile } from '../../new-file.ts';
import { keyDocument } from './key-document.ts';

export const outOption = [
  '--out <file>',
  'write the secret to a new file that only you can read, instead of printing it',
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

export function printMinted(
  cli: Cli,
  { key, secret }: MintedKey,
  out: string | undefined,
  extra: Record<string, unknown>,
): void {
  if (out === undefined) {
    cli.print({ ...extra, key: keyDocument(key), secret }, secret);
    cli.say(`Key "${key.name}" (${key.id}). Keep the secret now: it is not shown again.`);
  } else {
    cli.print({ ...extra, key: keyDocument(key), out }, out);
    cli.say(`Key "${key.name}" (${key.id}); its secret is in ${out}.`);
  }
}
