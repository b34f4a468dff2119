import { Argument } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import { thisSystem } from '../../../base/system.ts';
import type { Cli } from '../../cli.ts';

/** A secret never stands on the command line: it always comes from standard input. */
export function dashArgument(command: 'verify' | 'hash'): Argument {
  return new Argument('[-]', 'a dash: the key comes from standard input, so that no history keeps it')
    .choices(['-'])
    .argParser((text) => (text === '-' ? text : readsInput(command)));
}

/** The error says where the secret must come from. What was typed instead may be the secret, so it is not repeated. */
export function readsInput(command: 'verify' | 'hash'): never {
  throw new RankdError('usage', `\`rankd key ${command} -\` reads the key from standard input.`, {
    hint: thisSystem.example(`rankd key ${command} - < my-game.key`),
  });
}

export async function readKey({ io }: Cli): Promise<string> {
  return (await io.readSecret('game key (not shown): ')).trim();
}
