import type { Command } from 'commander';
import { isoTime } from '../../../base/time.ts';
import { rotateKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { duration, keyArgument } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';
import { keepIn, outOption, printMinted } from './hand-out.ts';

export const usualOverlapMs = 24 * 3_600_000;

export function rotateCommand(key: Command, cli: Cli): void {
  key
    .command('rotate')
    .description('make a new secret; the old one keeps working until the overlap ends')
    .argument(...keyArgument)
    .option('--overlap <duration>', 'how long the old secret keeps working (default: 24h)', duration)
    .option(...outOption)
    .addHelpText('after', examples('rankd key rotate my-game', 'rankd key rotate my-game --overlap 0s'))
    .action((idOrName: string, options: { overlap?: number; out?: string }) => rotate(cli, idOrName, options));
}

async function rotate(
  cli: Cli,
  key: string,
  { overlap: overlapMs = usualOverlapMs, out }: { overlap?: number; out?: string },
): Promise<void> {
  await cli.withStore(
    async (ports) => {
      const minted = await rotateKey(ports, { key, overlapMs, by: cli.by }, keepIn(cli, out));
      await printMinted(cli, minted, out, {});
      cli.say(
        overlapMs === 0
          ? 'The old secret is refused from now on.'
          : `The old secret works until ${isoTime(minted.oldExpiresAt)}. Game servers that run now keep it until they restart, so restart them before that (Creator Dashboard: Restart servers).`,
      );
    },
    { isWriting: true },
  );
}
