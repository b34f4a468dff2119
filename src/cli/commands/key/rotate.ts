import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { RankdError } from '../../../base/errors.ts';
import { keyState } from '../../../core/access.ts';
import { requireKey, rotateKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { duration } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { isoOrNull } from '../../output/time.ts';
import { handOut, outOption, printMinted } from './hand-out.ts';
import { keyArgument } from './key-argument.ts';

const usualOverlapMs = 24 * 3_600_000;

export function rotateCommand(key: Command, cli: Cli): void {
  key
    .command('rotate')
    .description('make a new secret; the old one works on until the overlap ends')
    .argument(...keyArgument)
    .option('--overlap <duration>', 'how long the old secret works on (default: 24h)', duration)
    .option(...outOption)
    .addHelpText('after', examples('rankd key rotate my-game', 'rankd key rotate my-game --overlap 0s'))
    .action((idOrName: string, options: { overlap?: number; out?: string }) => rotate(cli, idOrName, options));
}

async function rotate(
  cli: Cli,
  idOrName: string,
  { overlap = usualOverlapMs, out }: { overlap?: number; out?: string },
): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    const state = keyState(key, systemClock.now());
    if (state === 'revoked' || state === 'expired') {
      throw new RankdError('conflict', `Key "${key.name}" is ${state}; a new secret would not be accepted.`, {
        hint: 'rankd key create NAME',
      });
    }
    const oldExpiresAt = systemClock.now() + overlap;
    const minted = await handOut(cli, { out, mode: key.mode }, (fresh) =>
      rotateKey(store, { key, oldExpiresAt }, cli.by, fresh),
    );
    await printMinted(cli, minted, out, {});
    cli.say(
      overlap === 0
        ? 'The old secret is refused from now on.'
        : `The old secret works until ${isoOrNull(oldExpiresAt)}.`,
    );
  });
}
