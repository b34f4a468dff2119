import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { exportCommand } from './history/export.ts';
import { listCommand } from './history/list.ts';
import { showCommand } from './history/show.ts';
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
