import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { makeFile } from '../../base/files.ts';
import { thisSystem } from '../../base/system.ts';
import { hashKey, keyMode, mintKey } from '../../core/api-key.ts';
import type { Key, KeyMode } from '../../core/model.ts';
import { verifyKey } from '../../usecases/keys/authenticate.ts';
import { keyDocument, keyHashDocument, keyVerdictDocument } from '../../usecases/keys/key-document.ts';
import type { MintedKey, SaveSecret } from '../../usecases/keys/keys.ts';
import type { Cli } from '../cli.ts';
import { argument, command, flag, option } from '../command.ts';
import { asPlaceId, newFileName } from '../input/arguments.ts';
import { ExitCode } from '../output/errors.ts';

// Commands write secrets to a new file or print them once. They read secrets from standard input, never from arguments.

export const out = option(
  '--out <file>',
  'write the secret to a new file that only you can read, instead of printing it',
  newFileName,
);

/**
 * Returns a function that writes a new secret to the `--out` file, and returns another function, which deletes the
 * file. Without `--out`, both do nothing, because the command prints the secret later.
 */
export function saveTo(cli: Cli, out: string | undefined): SaveSecret {
  return (secret) => {
    if (out === undefined) return () => undefined;
    const path = makeSecretFile(cli, out, secret);
    return () => rmSync(path);
  };
}

function makeSecretFile(cli: Cli, out: string, secret: string): string {
  const path = resolve(cli.io.cwd, out);
  makeFile({ path, text: `${secret}\n`, mode: 0o600 });
  return path;
}

export async function printMinted(
  cli: Cli,
  { key, secret }: MintedKey,
  out: string | undefined,
  extra: Record<string, unknown>,
): Promise<void> {
  const document = { ...extra, key: keyDocument(key, systemClock.now()) };
  if (out === undefined) {
    await printSecret(cli, key, { ...document, secret }, secret);
    cli.say(`Key "${key.name}" (${key.id}). Save the key now: it is not shown again.`);
  } else {
    cli.printName({ ...document, out }, out);
    cli.say(`Key "${key.name}" (${key.id}) is in ${out}.`);
  }
}

/** Prints a new secret. If printing fails, the error explains how to replace or revoke the key. */
export async function printSecret(
  cli: Cli,
  { name }: Key,
  document: Record<string, unknown>,
  secret: string,
): Promise<void> {
  await cli.printOrFail(document, secret).catch((cause) => {
    const message = `Key "${name}" is active, but its secret could not be printed: ${cause.message}.`;
    const hint = `rankd key rotate ${name} --overlap 0s for a new secret, or rankd key revoke ${name}`;
    throw new RankdError('internal', message, { cause, hint });
  });
}

export const verifyCommand = command({
  name: 'verify',
  about: 'check whether a key from standard input is accepted',
  args: [dash('verify')],
  options: { place: option('--place <id>', 'also check the whitelist for this place', asPlaceId) },
  examples: ['rankd key verify - < my-game.key', 'rankd key verify - --place 920587237 < my-game.key'],
  run: async (cli, dash, { place }) => {
    if (dash === undefined) readsInput('verify');
    const secret = await readKey(cli);
    const verdict = await cli.withStore((ports) => verifyKey(ports, { secret, placeId: place }));
    const document = keyVerdictDocument(verdict, systemClock.now());
    cli.print(document, document.accepted ? `yes: key "${verdict.key?.name}"` : `no: ${verdict.reason}`);
    if (!document.accepted) throw new ExitCode(5);
  },
});

export const hashCommand = command({
  name: 'hash',
  about: 'print the hash of a secret, for a key that is declared in rankd.yaml; stores nothing',
  args: [dash('hash')],
  options: {
    new: option('--new <file>', 'create a secret and write it to this new file, which only you can read', newFileName),
    test: flag('--test', 'with --new: create a secret for a test key, which changes nothing'),
  },
  examples: ['rankd key hash --new my-game.key', 'rankd key hash - < my-game.key'],
  run: async (cli, dash, { new: file, test }) => {
    if ((dash === undefined) === (file === undefined)) {
      throw new RankdError('usage', 'Choose whether to read a secret (-) or to create one (--new FILE).', {
        hint: 'rankd key hash --help',
      });
    }
    const { secret, mode } = file === undefined ? await readWithMode(cli) : make(cli, file, test ? 'test' : 'live');
    const digest = hashKey(secret);
    cli.print(keyHashDocument(digest, { mode, out: file }), digest);
    cli.say(`Declare it in rankd.yaml:\n\nkeys:\n  - name: my-game\n    hash: ${digest}\n    mode: ${mode}`);
  },
});

function dash(command: 'verify' | 'hash') {
  const about = "a dash: read the key from standard input, which keeps it out of the shell's history";
  const made = argument('[-]', about, (text) => (text === '-' ? text : readsInput(command)));
  made.argChoices = ['-'];
  return made;
}

/** The error must not repeat a wrong argument, because it may be the secret. */
function readsInput(command: 'verify' | 'hash'): never {
  throw new RankdError('usage', `\`rankd key ${command} -\` reads the key from standard input.`, {
    hint: thisSystem.example(`rankd key ${command} - < my-game.key`),
  });
}

async function readKey({ io }: Cli): Promise<string> {
  return (await io.readSecret('game key (not shown): ')).trim();
}

async function readWithMode(cli: Cli): Promise<{ secret: string; mode: KeyMode }> {
  const secret = await readKey(cli);
  const mode = keyMode(secret);
  if (mode !== undefined) return { secret, mode };
  throw new RankdError('invalid_key', 'Standard input does not contain a valid game key.', {
    hint: 'rankd key hash --new FILE',
  });
}

function make(cli: Cli, file: string, mode: KeyMode): { secret: string; mode: KeyMode } {
  const { secret } = mintKey(mode);
  makeSecretFile(cli, file, secret);
  return { secret, mode };
}
