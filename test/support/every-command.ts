import type { Command } from 'commander';
import { thisSystem } from '../../src/base/system.ts';
import { allCommands } from '../../src/cli/output/help.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { TerminalIo } from './command-io.ts';

/** Every command without subcommands, e.g. `key create`. */
export const everyCommand: readonly string[] = allCommands(createProgram({ system: thisSystem } as TerminalIo))
  .filter(({ commands }) => commands.length === 0)
  .map(pathOf);

function pathOf(command: Command): string {
  const parent = command.parent;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}
