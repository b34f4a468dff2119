import { trustedConfig } from '../../config/locate.ts';
import type { Cli } from '../cli.ts';

/** The system program that starts the daemon and keeps it running. A file that rankd writes configures it. */
export interface ServiceManager {
  /** The word for the file in messages, e.g. `unit`. */
  readonly kind: string;
  readonly fileName: string;
  folder(cli: Cli): string;
  /** True if the folder belongs to the user; rankd then creates it if it does not exist. */
  readonly isOwnFolder: boolean;
  readonly encoding: 'utf8' | 'utf16le';
  text(cli: Cli): string;
  /** Returns the steps that load a new file. */
  register(cli: Cli, file: string): Step[];
  /** Returns the steps that stop and unregister the daemon, before the file is removed. */
  unregister(cli: Cli): Step[];
  afterRemoval?: Step[];
  /** Describes the steps that remain for the user. */
  next(cli: Cli, file: string): Promise<string>;
  warning?(cli: Cli): string | undefined;
}

/** A program to run. rankd then prints `done` or, if the program failed, `onFailure` with the command to type. */
export interface Step {
  program: string;
  args: string[];
  done: string;
  onFailure: (command: string) => string;
}

/** Returns the command that starts the daemon on this data directory and configuration, with absolute paths. */
export function serveLine(cli: Cli): string[] {
  const config = trustedConfig(cli.configSources)?.path;
  return [...cli.io.command, 'serve', '--data-dir', cli.dataDir, ...(config === undefined ? [] : ['--config', config])];
}

/** Points out a missing configuration: without one, the daemon would serve a simulated group. */
export function missingConfigNote(cli: Cli): string {
  if (trustedConfig(cli.configSources) !== undefined) return '';
  return '\nThere is no configuration yet: run rankd init, then rankd service install --force.';
}

export function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
