import type { Argument, Command, Option } from 'commander';

/** Where a line stands in the tree of commands. */
export interface Position {
  command: Command;
  /** The option whose value comes next. */
  pending: Option | undefined;
  /** The argument that comes next. */
  argument: Argument | undefined;
  /** True while a command may still come. */
  takesCommand: boolean;
  /** True after `--`: what follows is not an option. */
  onlyArguments: boolean;
  /** Words that fit nowhere in the tree. */
  unknown: string[];
}

/** Follows whole words from the root. Shells may split `--key=x` at the sign: a `=` by itself belongs to the option before it. */
export function walk(program: Command, words: readonly string[]): Position {
  let command = program;
  let pending: Option | undefined;
  let taken = 0;
  let onlyArguments = false;
  const unknown: string[] = [];
  for (const word of words) {
    const child = taken === 0 && !onlyArguments ? childOf(command, word) : undefined;
    if (pending !== undefined && !(pending.variadic && word.startsWith('-'))) {
      if (word !== '=' && !pending.variadic) pending = undefined;
    } else if (word === '--') {
      pending = undefined;
      onlyArguments = true;
    } else if (word.startsWith('-') && word !== '-' && !onlyArguments) {
      const [flag = ''] = word.split('=', 1);
      const option = optionsOf(command).find(({ long, short }) => flag === long || flag === short);
      pending = undefined;
      if (option === undefined) unknown.push(word);
      else if ((option.required || option.optional) && !word.includes('=')) pending = option;
    } else if (child !== undefined) {
      command = child;
    } else if (!(word === 'help' && command === program && taken === 0)) {
      if (argumentAt(command, taken) === undefined) unknown.push(word);
      taken += 1;
    }
  }
  const argument = argumentAt(command, taken);
  const takesCommand = taken === 0 && !onlyArguments && command.commands.length > 0;
  return { command, pending, argument, takesCommand, onlyArguments, unknown };
}

/** The options a command takes, those of the whole program included. */
export function optionsOf(command: Command): Option[] {
  const help = command.createHelp();
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
}

function childOf(command: Command, word: string): Command | undefined {
  return command.commands.find((child) => child.name() === word || child.aliases().includes(word));
}

function argumentAt({ registeredArguments }: Command, index: number): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[index] ?? (last?.variadic ? last : undefined);
}
