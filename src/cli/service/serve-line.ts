import { trustedConfig } from '../../config/locate.ts';
import type { Cli } from '../cli.ts';

/** What starts the daemon of this data directory and this configuration from anywhere: a program with its arguments, by absolute paths. */
export function serveLine(cli: Cli): string[] {
  const config = trustedConfig(cli.configSources)?.path;
  return [...cli.io.command, 'serve', '--data-dir', cli.dataDir, ...(config === undefined ? [] : ['--config', config])];
}

/** A remark if the daemon would serve the simulated group for want of a configuration. */
export function remarkOnConfig(cli: Cli): string {
  if (trustedConfig(cli.configSources) !== undefined) return '';
  return '\nThere is no configuration yet: run rankd init, then rankd service install --force.';
}

/** Text within XML. */
export function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
