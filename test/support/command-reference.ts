import type { Command } from 'commander';
import { systems } from '../../src/base/system.ts';
import { allCommands, examplesOf } from '../../src/cli/output/help.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { TerminalIo } from './command-io.ts';
import { table } from './reference-tables.ts';

const program = createProgram({ system: systems.linux, stdout: () => undefined } as unknown as TerminalIo);
const commands = allCommands(program).filter((one) => one.commands.length === 0);

/** Each command on a line, with a link to its details. */
export function commandsTable(): string[] {
  return table(
    ['command', 'what it does'],
    commands.map((command) => [`[\`${nameOf(command)}\`](#${anchorOf(command)})`, inACell(command.description())]),
  );
}

/** The options that every command takes. */
export function commonOptions(): string[] {
  const options = program.createHelp().visibleOptions(program);
  return table(
    ['option', 'what it does'],
    options.map(({ flags, description }) => [`\`${flags}\``, inACell(description)]),
  );
}

/** Every command with its arguments, options and examples, from its help text. */
export function commandDetails(): string[] {
  return commands.flatMap((command, index) => [...(index === 0 ? [] : ['']), ...details(command)]);
}

function details(command: Command): string[] {
  const help = command.createHelp();
  const words = help.visibleArguments(command).map((one) => [help.argumentTerm(one), help.argumentDescription(one)]);
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  const rows = [...words, ...options.map((one) => [one.flags, help.optionDescription(one)])];
  const lines = rows.map(([term = '', meaning = '']) => [`\`${term}\``, inACell(meaning)]);
  return [
    `### rankd ${nameOf(command)}`,
    '',
    `\`${help.commandUsage(command)}\`: ${inACell(command.description())}.`,
    ...(lines.length === 0 ? [] : ['', ...table(['argument or option', 'what it is'], lines)]),
    '',
    '```sh',
    ...examplesOf(command),
    '```',
  ];
}

/** Below `rankd`, e.g. `key create`. */
function nameOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent === program ? command.name() : `${nameOf(parent)} ${command.name()}`;
}

function anchorOf(command: Command): string {
  return `rankd-${nameOf(command).replaceAll(' ', '-')}`;
}

/** Escapes characters that have a meaning in Markdown. */
function inACell(text: string): string {
  return text.replaceAll(/[|<*]/g, '\\$&');
}
