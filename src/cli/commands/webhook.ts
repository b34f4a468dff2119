import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { addCommand } from './webhook/add.ts';
import { disableCommand, enableCommand, rotateCommand, setCommand } from './webhook/change.ts';
import { deliveriesCommand, redeliverCommand } from './webhook/deliveries.ts';
import { listCommand, removeCommand, showCommand } from './webhook/show.ts';
import { testCommand } from './webhook/test.ts';

export function webhookCommands(program: Command, cli: Cli): void {
  const webhook = program
    .command('webhook')
    .description('where rankd tells what it does: channels in Discord, and programs')
    .addHelpText('after', examples('rankd webhook add staff-log', 'rankd webhook list'));
  addCommand(webhook, cli);
  listCommand(webhook, cli);
  showCommand(webhook, cli);
  testCommand(webhook, cli);
  setCommand(webhook, cli);
  rotateCommand(webhook, cli);
  enableCommand(webhook, cli);
  disableCommand(webhook, cli);
  removeCommand(webhook, cli);
  deliveriesCommand(webhook, cli);
  redeliverCommand(webhook, cli);
}
