import { realpathSync } from 'node:fs';
import type { Command } from 'commander';
import { type System, thisSystem } from '../../base/system.ts';
import { withoutSecrets } from '../../core/api-key.ts';
import type { Io } from '../io.ts';
import { printable } from './text.ts';

const heading = '\nExamples:\n';

/** The examples that end every help text. */
export function examples(...lines: string[]): string {
  return `${heading}${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** A help text with its examples written for the shell of this system, without the examples for other systems. */
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

/** A command and all commands below it. */
export function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

/** The value of a setting, formatted for a person. */
export function settingText(value: unknown): string {
  if (value === undefined || value === null) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * The text with its commands (`rankd key list`) as the user types them here: with `typedAs` in place of `rankd`. On a
 * console, that is empty.
 */
export function asTyped(text: string, program: Command, typedAs: string): string {
  const names = program.commands
    .map((command) => command.name())
    .concat('help')
    .join('|');
  return text.replaceAll(new RegExp(`\\brankd (?=(?:${names})\\b|--?\\w|\\[)`, 'g'), () => typedAs && `${typedAs} `);
}

/**
 * Like `asTyped`, for the output of a command: its hints name the configuration and the database of its options. These options are not
 * added to a text that names others, or that mentions `--help`. `isJson`: the text is JSON already.
 */
export function hintsAsTyped(
  text: string,
  { program, io, isJson }: { program: Command; io: Pick<Io, 'typedAs' | 'system'>; isJson: boolean },
): string {
  const { config, dataDir } = program.opts<{ config?: string; dataDir?: string }>();
  const flags = Object.entries({ '--config': config, '--data-dir': dataDir }).flatMap(([flag, value]) =>
    value === undefined || text.includes(flag) || text.includes(' --help')
      ? []
      : [flag, io.system.quote(withoutSecrets(printable(value)))],
  );
  const typed = io.typedAs && [io.typedAs, ...flags].join(' ');
  return asTyped(text, program, isJson ? JSON.stringify(typed).slice(1, -1) : typed);
}

/**
 * The command that starts rankd again the way it was started. A shell that does not know the name `rankd` would refuse it, and npx would
 * download whatever package has that name in the registry. `script`: the absolute path that Node.js runs. `cwd`: the current folder, if
 * there is one. npm passes its own command to its children in the environment.
 */
export function commandFor({ script, cwd, env, launcher }: StartedBy, system: System = thisSystem): string {
  const { sep } = system.path;
  if (launcher !== undefined) return launcherAsTyped(launcher, { cwd, env }, system);
  const [packages, product, folder, name] = script.split(sep).slice(-4);
  if (name === 'rankd' && folder !== '.bin') return 'rankd';
  if (env['npm_command'] !== undefined) return 'npx rankd';
  // On Windows, npm puts no link on the path, but `rankd.cmd`, which starts this script.
  if (system.name === 'windows' && packages === 'node_modules' && product === 'rankd') return 'rankd';
  const path = script.startsWith(cwd + sep) ? script.slice((cwd + sep).length) : script;
  const word = system.quote(path);
  if (name !== 'rankd') return `node ${word}`;
  return path === script ? word : `./${word}`;
}

/** PowerShell runs a program of the current folder only with `.\\` before its name, and one in quotes only after `&`. */
function launcherAsTyped(
  launcher: string,
  { cwd, env }: Omit<StartedBy, 'script'>,
  { path, name, quote }: System,
): string {
  const folders = (env['PATH'] ?? env['Path'] ?? '').split(path.delimiter).filter((folder) => folder !== '');
  if (folders.some((folder) => leadsTo(path.join(folder, path.basename(launcher)), launcher))) return 'rankd';
  if (cwd === path.dirname(launcher)) return `.${path.sep}rankd`;
  const word = quote(launcher);
  return name === 'windows' && word !== launcher ? `& ${word}` : word;
}

function leadsTo(link: string, file: string): boolean {
  try {
    return realpathSync(link) === file;
  } catch {
    return false;
  }
}

interface StartedBy {
  script: string;
  /** The absolute path of the program that starts a portable rankd; `undefined` for another one. */
  launcher?: string | undefined;
  cwd: string | undefined;
  env: Record<string, string | undefined>;
}
