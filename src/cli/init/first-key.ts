import { createKey, type MintedKey } from '../../usecases/keys.ts';
import { asPlaceId, keyName } from '../arguments.ts';
import type { Cli } from '../cli.ts';
import { handOut } from '../commands/key/hand-out.ts';
import { ask, isAgreed } from './questions.ts';

/** The games' first key, by flags or where the person at the terminal wants one. */
export async function firstKey(
  cli: Cli,
  options: { key?: string; place?: number; out?: string },
): Promise<MintedKey | undefined> {
  const name = options.key ?? (await askForKey(cli));
  if (name === undefined) return undefined;
  const place = options.place ?? (await askForPlace(cli));
  return cli.withStore(async (store) => {
    const order = { name, mode: 'live', scopes: ['verify', 'rank'] } as const;
    const minted = await handOut(cli, options.out, () =>
      createKey(store, { ...order, scopes: [...order.scopes] }, cli.by),
    );
    if (place !== undefined) await store.addEntries({ keyId: minted.key.id, placeIds: [place] }, cli.by);
    cli.say(`Made the key "${name}"${place === undefined ? '' : ` for place ${place}`}; it is shown this once.`);
    return minted;
  });
}

async function askForKey({ io }: Cli): Promise<string | undefined> {
  if (!io.isTerminal || !(await isAgreed(io, 'Make an API key for your game now?'))) return undefined;
  return ask(io, { question: 'Name of the key [my-game]: ', parse: keyName, preset: 'my-game' });
}

async function askForPlace({ io }: Cli): Promise<number | undefined> {
  if (!io.isTerminal) return undefined;
  const parse = (text: string) => (text === '' ? undefined : asPlaceId(text));
  return ask(io, { question: 'Place id of the game (Enter for none yet): ', parse });
}
