import { realpathSync } from 'node:fs';
import type { Command } from 'commander';
import { type System, thisSystem } from '../../base/system.ts';
import { withoutSecrets } from '../../core/api-key.ts';
import type { Io } from '../io.ts';
import { printable } from './text.ts';

const heading = '\nExamples:\n';

export function examples(...lines: string[]): string {
  return `${heading}${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** Adapts the examples in a help text to this system's shell, and removes those for other systems. */
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

/** Turns `help key create` into `key create --help`, because commander would show the help of `key`. */
export function withHelpCommand(program: Command, line: string[]): string[] {
  const [first, ...words] = line;
  if (first !== 'help') return line;
  const path: string[] = [];
  let command = program;
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word);
    // commander rejects the unknown word
    if (next === undefined && command.commands.length > 0 && !word.startsWith('-')) return [...path, word];
    if (next === undefined) continue;
    path.push(word);
    command = next;
  }
  return [...path, '--help'];
}

export function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

export function settingText(value: unknown): string {
  if (value === undefined || value === null) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Replaces `rankd` in the text's commands, such as `rankd key list`, with `typedAs`, which is empty on a console. */
export function asTyped(text: string, program: Command, typedAs: string): string {
  return replaceCommands(text, program, () => typedAs);
}

/** `typedAs` gets the rest of the command, up to a backtick, a quote, a line break, a comma or a semicolon. */
function replaceCommands(text: string, program: Command, typedAs: (rest: string) => string): string {
  const names = program.commands
    .map((command) => command.name())
    .concat('help')
    .join('|');
  const found = new RegExp(`\\brankd (?=((?:(?:${names})\\b|--?\\w|\\[)[^\`"\\n,;]*))`, 'g');
  return text.replaceAll(found, (_, rest: string) => {
    const typed = typedAs(rest);
    return typed && `${typed} `;
  });
}

/**
 * Like `asTyped`, but also adds this command's --config and --data-dir to each command that does not contain them,
 * unless the text mentions `--help`. `isJson` is true if the text is JSON.
 */
export function hintsAsTyped(
  text: string,
  { program, io, isJson }: { program: Command; io: Pick<Io, 'typedAs' | 'system'>; isJson: boolean },
): string {
  const { config, dataDir } = program.opts<{ config?: string; dataDir?: string }>();
  const given = text.includes(' --help') ? [] : Object.entries({ '--config': config, '--data-dir': dataDir });
  return replaceCommands(text, program, (rest) => {
    const flags = given.flatMap(([flag, value]) =>
      value === undefined || rest.includes(flag) ? [] : [flag, io.system.quote(withoutSecrets(printable(value)))],
    );
    const typed = io.typedAs && [io.typedAs, ...flags].join(' ');
    return isJson ? JSON.stringify(typed).slice(1, -1) : typed;
  });
}

/**
 * Returns a command that starts rankd the way this process was started. If rankd is not on the path, `rankd` alone
 * would fail, and `npx rankd` could download an unrelated package. `script` is the absolute path of the running script.
 * npm sets `npm_command` for its child processes.
 */
export function commandFor({ script, cwd, env, launcher }: StartedBy, system: System = thisSystem): string {
  const { sep } = system.path;
  if (launcher !== undefined) return launcherAsTyped(launcher, { cwd, env }, system);
  const [packages, product, folder, name] = script.split(sep).slice(-4);
  if (name === 'rankd' && folder !== '.bin') return 'rankd';
  if (env['npm_command'] !== undefined) return 'npx rankd';
  // on Windows, npm puts `rankd.cmd` on the path, not a link to this script
  if (system.name === 'windows' && packages === 'node_modules' && product === 'rankd') return 'rankd';
  const path = script.startsWith(cwd + sep) ? script.slice((cwd + sep).length) : script;
  const word = system.quote(path);
  if (name !== 'rankd') return `node ${word}`;
  return path === script ? word : `./${word}`;
}

/**
 * Returns the command that runs a portable rankd's start program. PowerShell needs `.\` before a program in the current
 * folder, and `&` before a quoted path.
 */
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
  /** The absolute path of the start program, if rankd is portable. */
  launcher?: string | undefined;
  cwd: string | undefined;
  env: Record<string, string | undefined>;
}
