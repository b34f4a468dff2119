import { InvalidArgumentError } from 'commander';
import { RankdError } from '../../base/errors.ts';
import { isNameTaken } from '../../usecases/keys/find-key.ts';
import { createKey, type KeyRequest, type MintedKey } from '../../usecases/keys/keys.ts';
import type { Cli } from '../cli.ts';
import { keepIn } from '../commands/key/hand-out.ts';
import { asPlaceId, keyName } from '../input/arguments.ts';
import { ask, isAgreed } from './questions.ts';

/** What the games' first key should be. */
export interface FirstKey {
  name: string;
  place: number | undefined;
}

/** Throws `already_exists` if a key has the name. */
export async function requireFreeName(cli: Cli, name: string): Promise<void> {
  if (!(await isTaken(cli, name))) return;
  throw new RankdError('already_exists', `A key named ${name} exists already.`, {
    hint: `choose another name with --key, or leave --key out and go on with that one: rankd key show ${name}`,
  });
}

/** The first key as the flags say, or as the person at the terminal wants it; `undefined` if no key is wanted. */
export async function requestFirstKey(
  cli: Cli,
  options: { key?: string; place?: number },
): Promise<FirstKey | undefined> {
  const name = options.key ?? (await askForName(cli));
  return name === undefined ? undefined : { name, place: options.place ?? (await askForPlace(cli)) };
}

export async function makeFirstKey(cli: Cli, { name, place }: FirstKey, out: string | undefined): Promise<MintedKey> {
  return cli.withStore(
    async (ports) => {
      const request: KeyRequest = { name, mode: 'live', scopes: ['verify', 'rank'] };
      const onPlace = place === undefined ? {} : { place: { id: place } };
      const minted = await createKey(ports, { ...request, ...onPlace, by: cli.by }, keepIn(cli, out));
      const where = out === undefined ? 'it is shown this once' : `its secret is in ${out}`;
      cli.say(`Made the key "${name}"${place === undefined ? '' : ` for place ${place}`}; ${where}.`);
      return minted;
    },
    { isWriting: true },
  );
}

async function askForName(cli: Cli): Promise<string | undefined> {
  if (!cli.io.isTerminal || !(await isAgreed(cli.io, 'Make an API key for your game now?'))) return undefined;
  const parse = async (text: string) => {
    const name = keyName(text);
    if (await isTaken(cli, name))
      throw new InvalidArgumentError(`A key "${name}" exists already; choose another name.`);
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
  return ask(io, { question: 'Place id of the game (Enter for none yet): ', parse });
}
