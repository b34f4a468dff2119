import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { examples } from '../output/help.ts';
import { adoptCommand, pauseCommand, resumeCommand, revokeCommand, setCommand } from './key/change.ts';
import { createCommand } from './key/create.ts';
import { hashCommand } from './key/hash.ts';
import { listCommand } from './key/list.ts';
import { rotateCommand } from './key/rotate.ts';
import { showCommand } from './key/show.ts';
import { verifyCommand } from './key/verify.ts';

export function keyCommands(program: Command, cli: Cli): void {
  const key = program
    .command('key')
    .description('game keys: what game servers send to rankd')
    .addHelpText('after', examples('rankd key create my-game'));
  createCommand(key, cli);
  listCommand(key, cli);
  showCommand(key, cli);
  setCommand(key, cli);
  rotateCommand(key, cli);
  revokeCommand(key, cli);
  pauseCommand(key, cli);
  resumeCommand(key, cli);
  adoptCommand(key, cli);
  verifyCommand(key, cli);
  hashCommand(key, cli);
}
