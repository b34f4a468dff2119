import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { keyDocument, shownState } from '../../../usecases/documents/key.ts';
import { resumeKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { keyArgument } from '../../input/arguments.ts';
import { examples } from '../../output/help.ts';

export function resumeCommand(key: Command, cli: Cli): void {
  key
    .command('resume')
    .description('lift the pause of a key that changed many members in a short time')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd history list --key my-game', 'rankd key resume my-game'))
    .action((idOrName: string) => resume(cli, idOrName));
}

async function resume(cli: Cli, idOrName: string): Promise<void> {
  const { key, wasPaused } = await cli.withStore((ports) => resumeKey(ports, { key: idOrName, by: cli.by }));
  const now = systemClock.now();
  const outcome = wasPaused ? `is ${shownState(key, now)} again` : 'was not paused';
  cli.print({ key: keyDocument(key, now) }, `Key "${key.name}" ${outcome}.`);
}
