import type { Command } from 'commander';
import { changeTitle, detailedChangeDocument, namedRoles } from '../../usecases/documents/change.ts';
import { showChange } from '../../usecases/history/history.ts';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { facts } from '../output/table.ts';
import { exportCommand } from './history/export.ts';
import { listCommand } from './history/list.ts';
import { undoCommand } from './history/undo.ts';

export function historyCommands(program: Command, cli: Cli): void {
  const history = program
    .command('history')
    .description('every rank change that was asked for')
    .addHelpText(
      'after',
      examples(
        'rankd history list',
        'rankd history show chg_VbflntX4kQ2mX7Lp',
        'rankd history undo --key my-game --since 1h',
      ),
    );
  listCommand(history, cli);
  showCommand(history, cli);
  exportCommand(history, cli);
  undoCommand(history, cli);
}

function showCommand(history: Command, cli: Cli): void {
  history
    .command('show')
    .description('everything about one rank change')
    .argument('<id>', 'id of the change, from the list or the header x-rank-change')
    .addHelpText('after', examples('rankd history show chg_VbflntX4kQ2mX7Lp'))
    .action((id: string) => show(cli, id));
}

async function show(cli: Cli, id: string): Promise<void> {
  const told = await cli.withStore((ports) => showChange(ports, id));
  const document = detailedChangeDocument(told);
  const named = (ids: number[] | null) => ids && namedRoles(told.change, ids);
  const { roles: _, ...shown } = document;
  const { rolesBefore, rolesAfter } = document;
  cli.print(
    { change: document },
    facts({
      ...shown,
      change: changeTitle(told.change),
      rolesBefore: named(rolesBefore),
      rolesAfter: named(rolesAfter),
    }),
  );
}
