import type { Command } from 'commander';
import { systems } from '../../src/base/system.ts';
import { allCommands, examplesOf } from '../../src/cli/output/help.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { TerminalIo } from './command-io.ts';
import { table } from './reference-tables.ts';

const program = createProgram({ system: systems.linux, stdout: () => undefined } as unknown as TerminalIo);
const commands = allCommands(program).filter((one) => one.commands.length === 0);

/** The pages in docs/commands of commands that are not below a noun. */
const pagesOfOthers: Record<string, string> = {
  ...{ serve: 'daemon', status: 'daemon', health: 'daemon', reload: 'daemon', dashboard: 'daemon' },
  ...{ init: 'setup', doctor: 'setup', script: 'game', forget: 'history', backup: 'db', restore: 'db' },
  ...{ openapi: 'about', completion: 'about', man: 'about', version: 'about' },
};

const byPage = Map.groupBy(commands, (command) => {
  const [noun = ''] = nameOf(command).split(' ');
  return pagesOfOthers[noun] ?? noun;
});

/** The pages in docs/commands, without `.md`. */
export const commandPages: readonly string[] = [...byPage.keys()];

/** The subjects of the pages that are not named after a noun. */
const subjects: Record<string, string> = {
  daemon: 'the running daemon, and the page in the browser',
  setup: 'setting rankd up, and checking it',
  about: 'rankd itself, for shells, editors and programs',
};

/** Each page on a line, with a link to each of its commands. */
export function commandsTable(): string[] {
  const rows = [...byPage].map(([page, found]) => {
    const noun = program.commands.find((command) => command.name() === page);
    const links = found.map((command) => `[\`${nameOf(command)}\`](commands/${page}.md#${anchorOf(command)})`);
    return [
      `[${page}](commands/${page}.md)`,
      inMarkdown(subjects[page] ?? noun?.description() ?? ''),
      links.join(', '),
    ];
  });
  return table(['page', 'about', 'commands'], rows);
}

/** The options that every command takes. */
export function commonOptions(): string[] {
  const options = program.createHelp().visibleOptions(program);
  return table(
    ['option', 'what it does'],
    options.map(({ flags, description }) => [`\`${flags}\``, inMarkdown(description)]),
  );
}

/** The commands of a page with their arguments, options and examples, from their help texts. */
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
    `## rankd ${nameOf(command)}`,
    '',
    ...wrapped(`\`${help.commandUsage(command)}\`: ${inMarkdown(command.description())}.`, ''),
    ...(lines.length === 0 ? [] : ['', ...lines]),
    '',
    '```sh',
    ...examplesOf(command).map((example) => wrapped(example, '  ').join(' \\\n')),
    '```',
  ];
}

/** A paragraph in lines of at most 140 characters. */
export function wrapped(text: string, indent: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line.length + word.length >= 140) lines.push(`${indent}${word}`);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
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
function inMarkdown(text: string): string {
  return text.replaceAll(/[|<*]/g, '\\$&');
}
