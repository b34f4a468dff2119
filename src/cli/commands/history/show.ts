import type { Command } from 'commander';
import { RankdError } from '../../../base/errors.ts';
import type { Cli } from '../../cli.ts';
import { detailedChangeDocument } from '../../output/change-document.ts';
import { facts } from '../../output/facts.ts';
import { examples } from '../../output/help.ts';

export function showCommand(history: Command, cli: Cli): void {
  history
    .command('show')
    .description('one rank change with all that is known of it')
    .argument('<id>', 'id of the change, as the list and the header x-rank-change give it')
    .addHelpText('after', examples('rankd history show chg_VbflntX4kQ2mX7Lp'))
    .action((id: string) => show(cli, id));
}

async function show(cli: Cli, id: string): Promise<void> {
  const change = await cli.withStore((store) => store.findChange(id));
  if (change === undefined) {
    throw new RankdError('not_found', `There is no rank change with the id "${id}".`, { hint: 'rankd history list' });
  }
  const document = detailedChangeDocument(change);
  cli.print({ change: document }, facts(document));
}
