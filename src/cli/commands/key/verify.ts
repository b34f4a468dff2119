import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { keyVerdictDocument } from '../../../usecases/documents/key.ts';
import { verifyKey } from '../../../usecases/keys/verify-key.ts';
import type { Cli } from '../../cli.ts';
import { asPlaceId } from '../../input/arguments.ts';
import { ExitCode } from '../../output/errors.ts';
import { examples } from '../../output/help.ts';
import { dashArgument, readKey, readsInput } from './secret-input.ts';

export function verifyCommand(key: Command, cli: Cli): void {
  key
    .command('verify')
    .description('tell whether a key read from standard input is accepted')
    .addArgument(dashArgument('verify'))
    .option('--place <id>', 'also check the whitelist for this place', asPlaceId)
    .addHelpText(
      'after',
      examples('rankd key verify - < my-game.key', 'rankd key verify - --place 920587237 < my-game.key'),
    )
    .action((dash: '-' | undefined, options: { place?: number }) =>
      dash === undefined ? readsInput('verify') : verify(cli, options),
    );
}

async function verify(cli: Cli, { place }: { place?: number }): Promise<void> {
  const secret = await readKey(cli);
  const verdict = await cli.withStore((ports) => verifyKey(ports, { secret, placeId: place }));
  const document = keyVerdictDocument(verdict, systemClock.now());
  cli.print(document, document.accepted ? `yes: key "${verdict.key?.name}"` : `no: ${verdict.reason}`);
  if (!document.accepted) throw new ExitCode(5);
}
