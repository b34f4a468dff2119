import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { RankdError } from '../../base/errors.ts';
import { isNameTaken } from '../../usecases/keys/find-key.ts';
import { createKey, type KeyRequest, type MintedKey } from '../../usecases/keys/keys.ts';
import type { Cli } from '../cli.ts';
import { saveTo } from '../commands/key-secrets.ts';
import { asPlaceId, keyName } from '../input/arguments.ts';
import { isAgreed } from '../input/confirm.ts';
import { ask } from './credential.ts';

interface FirstKey {
  name: string;
  place: number | undefined;
}

/**
 * Returns the file in which to save the first key's secret. On a terminal, returns one even without `--out`, because
 * printed text scrolls away.
 */
export function secretFile({ io }: Cli, name: string | undefined, out: string | undefined): string | undefined {
  return out ?? (io.isTerminal && name !== undefined ? `${name}.key` : undefined);
}

export async function requireFreeName(cli: Cli, name: string): Promise<void> {
  const key = await cli.withStore(async (ports) =>
    (await isNameTaken(ports, name)) ? ports.store.findKey(name) : undefined,
  );
  if (key === undefined) return;
  const use = key.isSimulated
    ? `adopt that one afterwards: rankd key adopt ${name}`
    : `use that one: rankd key show ${name}`;
  throw new RankdError('already_exists', `A key named ${name} already exists.`, {
    hint: `choose a different name with --key, or leave out --key and ${use}`,
  });
}

export async function requestFirstKey(
  cli: Cli,
  options: { key?: string; place?: number; out?: string },
): Promise<FirstKey | undefined> {
  const name = options.key ?? (await askForName(cli, options));
  return name === undefined ? undefined : { name, place: options.place ?? (await askForPlace(cli)) };
}

export async function makeFirstKey(cli: Cli, { name, place }: FirstKey, out: string | undefined): Promise<MintedKey> {
  return cli.withStore(
    async (ports) => {
      const request: KeyRequest = { name, mode: 'live', scopes: ['verify', 'rank'] };
      const onPlace = place === undefined ? {} : { place: { id: place } };
      const minted = await createKey(ports, { ...request, ...onPlace, by: cli.by }, saveTo(cli, out));
      // on Windows, the folder's permissions decide who can read the file
      const access = cli.io.system.hasModes ? ', which only you can read' : '';
      const where = out === undefined ? '' : `. It is in ${out}${access}`;
      cli.say(`Created key "${name}"${place === undefined ? '' : ` for place ${place}`}${where}.`);
      return minted;
    },
    { isWriting: true },
  );
}

async function askForName(cli: Cli, { out }: { out?: string }): Promise<string | undefined> {
  if (!cli.io.isTerminal) return undefined;
  if (!(await isAgreed(cli, 'Create a key for your game now?', { preset: true }))) {
    cli.say('later: rankd key create my-game, then rankd whitelist add PLACE');
    return undefined;
  }
  const parse = async (text: string) => {
    const name = keyName(text);
    if (await isTaken(cli, name))
      throw new InvalidArgumentError(`A key named "${name}" already exists; choose a different name.`);
    const file = secretFile(cli, name, out) ?? '';
    if (out === undefined && existsSync(resolve(cli.io.cwd, file)))
      throw new InvalidArgumentError(
        `The file ${file} already exists; choose a different name, or move the file away.`,
      );
    return name;
  };
  return ask(cli.io, { question: 'Name of the key [my-game]: ', parse, preset: 'my-game' });
}

function isTaken(cli: Cli, name: string): Promise<boolean> {
  return cli.withStore((ports) => isNameTaken(ports, name));
}

async function askForPlace({ io }: Cli): Promise<number | undefined> {
  if (!io.isTerminal) return undefined;
  const parse = (text: string) => (text === '' ? undefined : asPlaceId(text));
  return ask(io, {
    question: 'Place id of the game (the number in the address of its page; Enter for none yet): ',
    parse,
  });
}
