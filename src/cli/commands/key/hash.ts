import type { Command } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import { hashKey, keyMode, mintKey } from '../../../core/api-key.ts';
import type { KeyMode } from '../../../core/model.ts';
import { keyHashDocument } from '../../../usecases/documents/key.ts';
import type { Cli } from '../../cli.ts';
import { newFileName } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { makeSecretFile } from './hand-out.ts';
import { dashArgument, readKey } from './secret-input.ts';

interface HashOptions {
  new?: string;
  test?: boolean;
}

export function hashCommand(key: Command, cli: Cli): void {
  key
    .command('hash')
    .description('print the hash of a secret, for a key that is declared in rankd.yaml; nothing is kept')
    .addArgument(dashArgument('hash'))
    .option('--new <file>', 'make a new secret and write it to this new file that only you can read', newFileName)
    .option('--test', 'with --new: a secret for a key that changes nothing')
    .addHelpText('after', examples('rankd key hash --new my-game.key', 'rankd key hash - < my-game.key'))
    .action((dash: string | undefined, options: HashOptions) => hash(cli, dash, options));
}

async function hash(cli: Cli, dash: string | undefined, { new: file, test }: HashOptions): Promise<void> {
  if ((dash === undefined) === (file === undefined)) {
    throw new RankdError('usage', 'Say whether to read a secret (-) or to make one (--new FILE).', {
      hint: 'rankd key hash --help',
    });
  }
  const { secret, mode } = file === undefined ? await read(cli) : make(cli, file, test ? 'test' : 'live');
  const digest = hashKey(secret);
  cli.print(keyHashDocument(digest, { mode, out: file }), digest);
  cli.say(`Declare it in rankd.yaml:\n\nkeys:\n  - name: my-game\n    hash: ${digest}\n    mode: ${mode}`);
}

async function read(cli: Cli): Promise<{ secret: string; mode: KeyMode }> {
  const secret = await readKey(cli);
  const mode = keyMode(secret);
  if (mode !== undefined) return { secret, mode };
  throw new RankdError('invalid_key', 'What came on standard input is not a game key, or it is mistyped.', {
    hint: 'rankd key hash --new FILE',
  });
}

function make(cli: Cli, file: string, mode: KeyMode): { secret: string; mode: KeyMode } {
  const fresh = mintKey(mode);
  makeSecretFile(cli, file, fresh.secret);
  return { secret: fresh.secret, mode };
}
