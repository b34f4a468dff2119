import type { Command } from 'commander';
import { systems } from '../../src/base/system.ts';
import { allCommands, examplesOf } from '../../src/cli/output/help.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { TerminalIo } from './command-io.ts';
import { table } from './reference-tables.ts';

const program = createProgram({ system: systems.linux, stdout: () => undefined } as unknown as TerminalIo);
const commands = allCommands(program).filter((one) => one.commands.length === 0);

/**
 * The page in docs/commands of each single-word command. All other commands are on the page of their noun: `key create`
 * is on `key`.
 */
const otherPages: Record<string, string> = {
  ...{ serve: 'daemon', status: 'daemon', health: 'daemon', reload: 'daemon', dashboard: 'daemon' },
  ...{ init: 'setup', doctor: 'setup', script: 'game', forget: 'history', backup: 'db', restore: 'db' },
  ...{ openapi: 'about', completion: 'about', man: 'about', version: 'about' },
};

const byPage = Map.groupBy(commands, (command) => {
  const [noun = ''] = commandName(command).split(' ');
  return otherPages[noun] ?? noun;
});

/** The names of the pages in docs/commands, without `.md`. */
export const commandPages: readonly string[] = [...byPage.keys()];

/** The subjects of pages that are not named after a noun. */
const subjects: Record<string, string> = {
  daemon: 'the running daemon, and the page in the browser',
  setup: 'setting rankd up, and checking it',
  about: 'rankd itself, for shells, editors and programs',
};

export function commandsTable(): string[] {
  const rows = [...byPage].map(([page, found]) => {
    const noun = program.commands.find((command) => command.name() === page);
    const links = found.map((command) => `[\`${commandName(command)}\`](commands/${page}.md#${anchorOf(command)})`);
    return [
      `[${page}](commands/${page}.md)`,
      inMarkdown(subjects[page] ?? noun?.description() ?? ''),
      links.join(', '),
    ];
  });
  return table(['page', 'about', 'commands'], rows);
}

export function commonOptions(): string[] {
  const options = program.createHelp().visibleOptions(program);
  return table(
    ['option', 'what it does'],
    options.map(({ flags, description }) => [`\`${flags}\``, inMarkdown(description)]),
  );
}

/** Returns the Markdown lines that describe a page's commands, generated from their help. */
export function commandDetails(page: string): string[] {
  return (byPage.get(page) ?? []).flatMap((command, index) => [...(index === 0 ? [] : ['']), ...details(command)]);
}

function details(command: Command): string[] {
  const help = command.createHelp();
  const words = help.visibleArguments(command).map((one) => [help.argumentTerm(one), help.argumentDescription(one)]);
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  const rows = [...words, ...options.map((one) => [one.flags, help.optionDescription(one)])];
  const lines = rows.flatMap(([term = '', meaning = '']) => wrapped(`- \`${term}\`: ${inMarkdown(meaning)}`, '  '));
  return [
    `## rankd ${commandName(command)}`,
    '',
    ...wrapped(`\`${help.commandUsage(command)}\`: ${inMarkdown(command.description())}.`, ''),
    ...(lines.length === 0 ? [] : ['', ...lines]),
    '',
    '```sh',
    ...examplesOf(command).map((example) => wrapped(example, '  ').join(' \\\n')),
    '```',
  ];
}

export function wrapped(text: string, indent: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + word.length >= 140) lines.push(`${indent}${word}`);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}

/** e.g. `key create` */
function commandName(command: Command): string {
  const { parent } = command;
  return parent === null || parent === program ? command.name() : `${commandName(parent)} ${command.name()}`;
}

function anchorOf(command: Command): string {
  return `rankd-${commandName(command).replaceAll(' ', '-')}`;
}

function inMarkdown(text: string): string {
  return text.replaceAll(/[|<*]/g, '\\$&');
}
