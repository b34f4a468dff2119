import { trustedConfig } from '../../config/locate.ts';
import type { Cli } from '../cli.ts';

/** A system program that starts the daemon and keeps it running, configured by a file that rankd writes. */
export interface ServiceManager {
  /** The word for the file in messages, e.g. `unit`. */
  readonly kind: string;
  readonly fileName: string;
  /** Returns the folder where the manager reads the file. */
  folder(cli: Cli): string;
  /** True if the folder belongs to the user, so that rankd may create it. */
  readonly isOwnFolder: boolean;
  readonly encoding: 'utf8' | 'utf16le';
  /** Returns the file's content, with this machine's paths. */
  text(cli: Cli): string;
  /** Returns the steps that load a new file. */
  takeUp(cli: Cli, file: string): Step[];
  /** Returns the steps that stop and unregister the daemon, before the file is removed. */
  forget(cli: Cli): Step[];
  /** The steps after the file has been removed. */
  afterRemoval?: Step[];
  /** Returns the remaining manual steps. */
  next(cli: Cli, file: string): Promise<string>;
  warning?(cli: Cli): string | undefined;
}

/** A program to run. Prints `done` or, if the program fails, `otherwise` with the command to type. */
export interface Step {
  program: string;
  args: string[];
  done: string;
  otherwise: (command: string) => string;
}

/** Returns the command that starts the daemon with this data directory and configuration, with absolute paths. */
export function serveLine(cli: Cli): string[] {
  const config = trustedConfig(cli.configSources)?.path;
  return [...cli.io.command, 'serve', '--data-dir', cli.dataDir, ...(config === undefined ? [] : ['--config', config])];
}

/** Returns a note if there is no configuration, without which the daemon would serve the simulated group. */
export function remarkOnConfig(cli: Cli): string {
  if (trustedConfig(cli.configSources) !== undefined) return '';
  return '\nThere is no configuration yet: run rankd init, then rankd service install --force.';
}

export function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
