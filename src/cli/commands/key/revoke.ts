import type { Command } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import type { Key } from '../../../core/model.ts';
import { keyDocument } from '../../../usecases/documents/key.ts';
import { revokeKey } from '../../../usecases/keys/keys.ts';
import type { Cli } from '../../cli.ts';
import { keyArgument } from '../../input/arguments.ts';
import { confirm } from '../../input/confirm.ts';
import { examples } from '../../output/help.ts';

export function revokeCommand(key: Command, cli: Cli): void {
  key
    .command('revoke')
    .description('refuse the key from the next request on, for good')
    .argument(...keyArgument)
    .addHelpText('after', examples('rankd key revoke my-game', 'rankd key revoke my-game -y'))
    .action((idOrName: string) => revoke(cli, idOrName));
}

async function revoke(cli: Cli, idOrName: string): Promise<void> {
  const agreed = ({ name }: Key) => confirm(cli, `Revoke key "${name}" for good?`);
  const key = await cli.withStore((ports) => revokeKey(ports, { key: idOrName, by: cli.by }, agreed));
  cli.print({ key: keyDocument(key, systemClock.now()) }, `Key "${key.name}" is revoked.`);
}
