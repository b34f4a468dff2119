import type { Command } from 'commander';
import { refuseDeclared } from '../../../core/declared.ts';
import { requireKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { confirm } from '../../input/confirm.ts';
import { examples } from '../../output/help.ts';
import { keyArgument } from './key-argument.ts';
import { keyDocument } from './key-document.ts';

export function revokeCommand(key: Command, cli: Cli): void {
  key
    .command('revoke')
    .description('refuse the key from the next request on, for good')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd key revoke my-game', 'rankd key revoke my-game -y'))
    .action((idOrName: string) => revoke(cli, idOrName));
}

async function revoke(cli: Cli, idOrName: string): Promise<void> {
  await cli.withStore(async (store) => {
    const key = await requireKey(store, idOrName);
    refuseDeclared(`Key "${key.name}"`, key); // before anyone is asked
    await confirm(cli, `Revoke key "${key.name}" for good?`);
    const revoked = await store.revokeKey(key.id, cli.by);
    cli.print({ key: keyDocument(revoked) }, `Key "${key.name}" is revoked.`);
  });
}
