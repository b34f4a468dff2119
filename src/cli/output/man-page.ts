import type { Command } from 'commander';
import { version } from '../../base/version.ts';
import type { exitCodes } from './errors.ts';

type ExitStatus = 0 | (typeof exitCodes)[keyof typeof exitCodes] | 130;

const exitStatuses = {
  0: 'done, or yes',
  1: 'unexpected error',
  2: 'wrong usage',
  3: 'not found',
  4: 'already exists, or a conflict',
  5: 'refused, or the answer is no',
  69: 'unavailable: for example, Roblox is down or the port is taken',
  75: 'try again later',
  77: 'no permission, or Roblox does not accept the Roblox key',
  78: 'invalid configuration, or an unsupported version of Node.js or of the database',
  130: 'interrupted',
} as const satisfies Record<ExitStatus, string>;

const environment = {
  RANKD_CONFIG: 'the configuration file',
  RANKD_DATA_DIR: 'folder of the database',
  RANKD_PLATFORM_API_KEY: 'the Roblox key, an Open Cloud API key',
  RANKD_STORE_URL: 'the PostgreSQL database to use instead of the one in the data directory',
  RANKD_STORE_PASSWORD: 'the password for it',
  RANKD_ERASURE_SECRET: "the secret of Roblox's right-to-erasure webhook",
  'RANKD_*': 'other settings: RANKD_SERVER_PORT is server.port',
  NO_COLOR: 'no colors, even on a terminal',
  FORCE_COLOR: 'colors on a terminal, regardless of NO_COLOR and TERM; 0: no colors',
};

export function manPage(program: Command, examplesOf: (command: Command) => string[]): string {
  const commands = program.commands.flatMap(visibleLeaves);
  return [
    `.TH RANKD 1 "" "rankd ${version}" "User Commands"`,
    '.nh',
    '.ad l',
    '.SH NAME',
    `rankd \\- ${escaped(program.description())}`,
    '.SH SYNOPSIS',
    '.B rankd',
    '.RI [ options ]',
    '.I command',
    '.RI [ arguments ]',
    '.SH OPTIONS',
    'These options work with every command, anywhere on the line.',
    ...items(
      program
        .createHelp()
        .visibleOptions(program)
        .map(({ flags, description }) => [flags, description]),
    ),
    '.SH COMMANDS',
    ...commands.flatMap((command) => section(command, examplesOf(command))),
    '.SH EXIT STATUS',
    ...items(Object.entries(exitStatuses)),
    '.SH ENVIRONMENT',
    ...items(Object.entries(environment)),
    '.SH FILES',
    ...items([
      [
        './rankd.yaml, $XDG_CONFIG_HOME/rankd/rankd.yaml, /etc/rankd/rankd.yaml',
        'the configuration: the first that exists',
      ],
      ['~/.local/share/rankd', 'the database'],
    ]),
    '.SH EXAMPLES',
    ...example(examplesOf(program)),
    '',
  ].join('\n');
}

function visibleLeaves(command: Command): Command[] {
  const children = command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help');
  return children.length === 0 ? [command] : children.flatMap(visibleLeaves);
}

function section(command: Command, examples: string[]): string[] {
  const help = command.createHelp();
  const words = help.visibleArguments(command).map((argument) => [help.argumentTerm(argument), argument.description]);
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  return [
    `.SS ${escaped(help.commandUsage(command))}`,
    escaped(command.description()),
    ...items([...words, ...options.map((option) => [option.flags, help.optionDescription(option)])]),
    ...example(examples),
  ];
}

function items(pairs: string[][]): string[] {
  return pairs.flatMap(([term = '', meaning = '']) => ['.TP', `.B ${escaped(term)}`, escaped(meaning)]);
}

function example(lines: string[]): string[] {
  return ['.PP', '.nf', '.RS', ...lines.map(escaped), '.RE', '.fi'];
}

/** Escapes the text for roff: backslashes, dashes, non-ASCII characters, and a dot or quote at the start of a line. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(
      /[^\x20-\x7e]/gu,
      (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replace(/^([.'])/, '\\&$1');
}
