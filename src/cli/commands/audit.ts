import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { listCommand } from './audit/list.ts';
import { verifyCommand } from './audit/verify.ts';

export function auditCommands(program: Command, cli: Cli): void {
  const audit = program
    .command('audit')
    .description('what operators, keys and refused callers did')
    .addHelpText('after', examples('rankd audit list --since 24h', 'rankd audit verify'));
  listCommand(audit, cli);
  verifyCommand(audit, cli);
}
