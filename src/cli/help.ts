import type { Command } from 'commander';

const heading = '\nExamples:\n';

/** The examples that end every help text. */
export function examples(...lines: string[]): string {
  return `${heading}${lines.map((line) => `  ${line}`).join('\n')}`;
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

/** A command with all below it. */
export function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
