import type { Command } from 'commander';
import type { System } from '../../base/system.ts';

const heading = '\nExamples:\n';

/** The examples that end every help text. */
export function examples(...lines: string[]): string {
  return `${heading}${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** A help text with its examples as the shell of the system reads them, without those that are about another system. */
export function withExamplesFor({ example }: Pick<System, 'example'>, text: string): string {
  const [usage = '', lines] = text.split(heading);
  if (lines === undefined) return text;
  return `${usage}${examples(
    ...lines
      .trim()
      .split(/\n */)
      .flatMap((line) => example(line) ?? []),
  )}\n`;
}

/** The examples of a command, as its help text has them. */
export function examplesOf(command: Command): string[] {
  const { writeOut } = command.configureOutput();
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  command.configureOutput({ ...(writeOut !== undefined && { writeOut }) });
  const [, found = ''] = text.split(heading);
  return found.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

/** Turns `help key create` into `key create --help`, as commander would show the help of `key`. Other lines stay as they are. */
export function withHelpCommand(program: Command, line: string[]): string[] {
  const [first, ...words] = line;
  if (first !== 'help') return line;
  const path: string[] = [];
  let command = program;
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined && command.commands.length > 0 && !word.startsWith('-')) return [...path, word]; // commander refuses it
    if (next === undefined) continue;
    path.push(word);
    command = next;
  }
  return [...path, '--help'];
}

/** A command with all below it. */
export function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
