import { trustedConfig } from '../../config/locate.ts';
import type { Cli } from '../cli.ts';

/** A program that starts the daemon and keeps it running, configured by a file that rankd writes. */
export interface ServiceManager {
  /** The file's name in messages. */
  readonly kind: string;
  readonly fileName: string;
  /** The path where the manager reads it. */
  folder(cli: Cli): string;
  /** True if that folder is the user's own, so that rankd may create it. */
  readonly isOwnFolder: boolean;
  readonly encoding: 'utf8' | 'utf16le';
  /** The file, with the paths of this machine. */
  text(cli: Cli): string;
  /** Loads a new file. */
  takeUp(cli: Cli, file: string): Step[];
  /** Stops the daemon and forgets it, before the file is removed. */
  forget(cli: Cli): Step[];
  /** The steps after the file has been removed. */
  afterRemoval?: Step[];
  /** The remaining manual steps. */
  next(cli: Cli, file: string): Promise<string>;
  warning?(cli: Cli): string | undefined;
}

/** A program to run, and a message about it. If it fails, `otherwise` is printed with the command to type. */
export interface Step {
  program: string;
  args: string[];
  done: string;
  otherwise: (command: string) => string;
}

/**
 * The command that starts the daemon of this data directory and this configuration from anywhere: a program with its
 * arguments, by absolute paths.
 */
export function serveLine(cli: Cli): string[] {
  const config = trustedConfig(cli.configSources)?.path;
  return [...cli.io.command, 'serve', '--data-dir', cli.dataDir, ...(config === undefined ? [] : ['--config', config])];
}

/** A remark if the daemon would serve the simulated group because there is no configuration. */
export function remarkOnConfig(cli: Cli): string {
  if (trustedConfig(cli.configSources) !== undefined) return '';
  return '\nThere is no configuration yet: run rankd init, then rankd service install --force.';
}

/** Text escaped for XML. */
export function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
