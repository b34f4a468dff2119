import { isSameFile, locateConfig } from '../../config/locate.ts';
import type { Cli } from '../cli.ts';

/** The file that commands read here, if the daemon reads another one: changes in it do not reach the daemon. */
export function strangerTo({ io: { env, cwd }, options }: Cli, daemonFile: string | null): string | undefined {
  const here = locateConfig({ configFile: options.config, env, cwd })?.path;
  return here !== undefined && (daemonFile === null || !isSameFile(here, daemonFile)) ? here : undefined;
}

/** `daemonFile` is null if the daemon reads none. */
export function notItsFile(daemonFile: string | null, file: string): string {
  return `the daemon reads ${daemonFile ?? 'no configuration file'}, not ${file}; to have it read that one, stop it and run: rankd serve --config ${file}`;
}
