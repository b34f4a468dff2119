import type { Command } from 'commander';
import { detailedChangeDocument } from '../../../usecases/documents/change.ts';
import { showChange } from '../../../usecases/history/history.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../output/help.ts';
import { facts } from '../../output/table.ts';

export function showCommand(history: Command, cli: Cli): void {
  history
    .command('show')
    .description('one rank change with all that is known of it')
    .argument('<id>', 'id of the change, as the list and the header x-rank-change give it')
    .addHelpText('after', examples('rankd history show chg_VbflntX4kQ2mX7Lp'))
    .action((id: string) => show(cli, id));
}

async function show(cli: Cli, id: string): Promise<void> {
  const document = detailedChangeDocument(await cli.withStore((ports) => showChange(ports, id)));
  cli.print({ change: document }, facts(document));
}
