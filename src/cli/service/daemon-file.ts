import { thisSystem } from '../../base/system.ts';
import { distrustOfFound, isSameFile, locateConfig } from '../../config/locate.ts';
import type { Cli } from '../cli.ts';

/** The file that commands read here, if the daemon reads another one: changes in it do not reach the daemon. */
export function strangerTo(
  { configSources }: Pick<Cli, 'configSources'>,
  daemonFile: string | null,
): string | undefined {
  const here = locateConfig(configSources);
  if (here === undefined || distrustOfFound(here, configSources) !== undefined) return undefined;
  return daemonFile === null || !isSameFile(here.path, daemonFile) ? here.path : undefined;
}

/** `daemonFile` is null if the daemon reads none. */
export function notItsFile(daemonFile: string | null, file: string): string {
  const its =
    daemonFile === null ? 'was started without a configuration file, so it does not read' : `reads ${daemonFile}, not`;
  return `the daemon ${its} ${file}. If it should read that file, stop it and run: rankd serve --config ${thisSystem.quote(file)}`;
}
