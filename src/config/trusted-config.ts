import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { codeOf } from '../base/error-code.ts';
import { RankdError } from '../base/errors.ts';
import { thisSystem } from '../base/system.ts';
import { distrustOf } from './distrust.ts';
import { type ConfigLocation, type ConfigLocationSources, locateConfig, namedConfig } from './locate.ts';

/**
 * As `locateConfig`, for whoever reads the file. Throws `config_invalid` if it does not exist, and `no_permission` if it was found, not
 * named, and may come from another user.
 */
export function trustedConfig(sources: ConfigLocationSources): ConfigLocation | undefined {
  const location = locateConfig(sources);
  if (location === undefined) return undefined;
  requireThere(location);
  const distrust = distrustOfFound(location, sources);
  if (distrust === undefined) return location;
  const { path } = location;
  throw new RankdError('no_permission', `The configuration file ${path} was found, but not read: ${distrust}.`, {
    hint: `if you trust what it says, name it with --config ${thisSystem.quote(path)}; otherwise run rankd in a folder of your own`,
  });
}

/** As `distrustOf`; whoever names a file trusts it. */
export function distrustOfFound({ path }: ConfigLocation, sources: ConfigLocationSources): string | undefined {
  return namedConfig(sources) === undefined ? distrustOf(path, sources) : undefined;
}

/** Throws `config_invalid` if the file that `--config` names does not exist: it was mistyped, also where nothing of it is needed. */
export function requireNamed({ configFile, cwd }: ConfigLocationSources): void {
  if (configFile) requireThere({ path: resolve(cwd, configFile), name: configFile });
}

export function missingConfig(name: string, cause: unknown): RankdError {
  return new RankdError('config_invalid', `The configuration file ${name} does not exist.`, {
    hint: 'check the path; config/rankd.example.yaml shows every setting',
    cause,
  });
}

/** One that can't be looked at may be there; whoever reads it is told. */
function requireThere({ path, name }: ConfigLocation): void {
  try {
    statSync(path);
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(cause))) throw missingConfig(name, cause);
  }
}
