import type { Command } from 'commander';
import { requireKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../output/help.ts';
import { keyArgument } from './key-argument.ts';
import { keyDocument, stateOf } from './key-document.ts';

export function resumeCommand(key: Command, cli: Cli): void {
  key
    .command('resume')
    .description('lift the pause of a key that changed many members in a short time')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd history list --key my-game', 'rankd key resume my-game'))
    .action((idOrName: string) => resume(cli, idOrName));
}

async function resume(cli: Cli, idOrName: string): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    if (key.pausedAt === undefined) return cli.print({ key: keyDocument(key) }, `Key "${key.name}" was not paused.`);
    const resumed = await store.pauseKey({ keyId: key.id, paused: false, reason: 'by the operator' }, cli.by);
    cli.print({ key: keyDocument(resumed) }, `Key "${key.name}" is ${stateOf(resumed)} again.`);
  });
}
