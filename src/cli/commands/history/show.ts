import type { Command } from 'commander';
import { detailedChangeDocument } from '../../../usecases/documents/change.ts';
import { showChange } from '../../../usecases/history/history.ts';
import type { Cli } from '../../cli.ts';
import { examples } from '../../output/help.ts';
import { facts } from '../../output/table.ts';

export function showCommand(history: Command, cli: Cli): void {
  history
    .command('show')
    .description('everything about one rank change')
    .argument('<id>', 'id of the change, from the list or the header x-rank-change')
    .addHelpText('after', examples('rankd history show chg_VbflntX4kQ2mX7Lp'))
    .action((id: string) => show(cli, id));
}

async function show(cli: Cli, id: string): Promise<void> {
  const document = detailedChangeDocument(await cli.withStore((ports) => showChange(ports, id)));
  cli.print({ change: document }, facts(document));
}
