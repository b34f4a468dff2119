import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../../../base/clock.ts';
import { RankdError } from '../../../base/errors.ts';
import { makeFile } from '../../../base/files.ts';
import type { Key } from '../../../core/model.ts';
import { keyDocument } from '../../../usecases/documents/key.ts';
import type { KeepSecret, MintedKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { newFileName } from '../../input/arguments.ts';

export const outOption = [
  '--out <file>',
  'write the secret to a new file that only you can read, instead of printing it',
  newFileName,
] as const;

/** Keeps a new secret in the file that `--out` names; without one, it is printed later. */
export function keepIn(cli: Cli, out: string | undefined): KeepSecret {
  return (secret) => {
    if (out === undefined) return () => undefined;
    const path = makeSecretFile(cli, out, secret);
    return () => rmSync(path);
  };
}

/** Only its owner can read it. Returns its path. */
export function makeSecretFile(cli: Cli, out: string, secret: string): string {
  const path = resolve(cli.io.cwd, out);
  makeFile({ path, text: `${secret}\n`, mode: 0o600 });
  return path;
}

/** Says that the secret is shown only once, or where it is. */
export async function printMinted(
  cli: Cli,
  { key, secret }: MintedKey,
  out: string | undefined,
  extra: Record<string, unknown>,
): Promise<void> {
  if (out === undefined) {
    await printSecret(cli, key, { ...extra, key: keyDocument(key, systemClock.now()), secret }, secret);
    cli.say(`Key "${key.name}" (${key.id}). Keep the secret now: it is not shown again.`);
  } else {
    cli.printName({ ...extra, key: keyDocument(key, systemClock.now()), out }, out);
    cli.say(`Key "${key.name}" (${key.id}); its secret is in ${out}.`);
  }
}

/** Prints a document with a new secret in it. If that can't be written, the error says what to do with the key. */
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
