import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../base/error-code.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type ConfigLocation, type ConfigLocationSources, locateConfig } from './locate.ts';
import { ConfigError } from './problem.ts';
import { chooseStore, type StoreSettings } from './store-choice.ts';
import { trustedConfig } from './trusted-config.ts';

/**
 * For commands that need no configuration but must know where the store is. `undefined` if it is SQLite's for sure, which costs them
 * nothing: no variable names another, and the file has no section `store`. Otherwise it reads that section alone, and no other setting can
 * keep the command from working.
 */
export function storeFinder(sources: ConfigLocationSources): (() => Promise<ServerAddress | undefined>) | undefined {
  const location = sources.env['RANKD_STORE_URL'] ? undefined : fileWithStore(sources);
  if (!sources.env['RANKD_STORE_URL'] && location === undefined) return undefined;
  return () => findStore(sources);
}

/** The server that a URL in an option of the command line names. What else is set of the store holds for it: password, authority, TLS. */
export async function storeNamed(sources: ConfigLocationSources, named: NamedStore): Promise<ServerAddress> {
  const server = await findStore(sources, named);
  if (server === undefined) throw new TypeError('a URL names a server');
  return server;
}

interface NamedStore {
  url: string;
  /** e.g. `--from` */
  option: string;
}

async function findStore(sources: ConfigLocationSources, named?: NamedStore): Promise<ServerAddress | undefined> {
  const { env, cwd } = sources;
  const isUrlElsewhere = Boolean(named?.url ?? env['RANKD_STORE_URL']);
  const location = fileWithStore(sources, { isUrlElsewhere }) && trustedConfig(sources);
  const section =
    location === undefined
      ? { settings: {}, problems: [] }
      : (await import('./store-section.ts')).storeSection(location);
  const inFile = section.settings;
  const inEnvironment = withoutEmpty({
    url: named?.url ?? env['RANKD_STORE_URL'],
    password_file: env['RANKD_STORE_PASSWORD_FILE'],
    ca_file: env['RANKD_STORE_CA_FILE'],
    tls: env['RANKD_STORE_TLS'],
  });
  const settings = { ...inFile, ...inEnvironment };
  const choice = chooseStore({
    settings,
    env,
    isUrlInFile: inEnvironment.url === undefined,
    folderOf: (setting) => (inEnvironment[setting] === undefined && location ? dirname(location.path) : cwd),
  });
  const ofTls = ['verify', 'off', undefined].includes(settings.tls)
    ? []
    : [{ setting: 'tls' as const, text: 'expected one of verify, off' }];
  const ofSettings = [...ofTls, ...choice.problems].map(({ setting, text }) => {
    const isInFile = inEnvironment[setting] === undefined;
    return isInFile
      ? { at: location?.name, setting: `store.${setting}`, text }
      : { at: named && setting === 'url' ? named.option : `RANKD_STORE_${setting.toUpperCase()}`, text };
  });
  const ofFile = section.problems
    .filter(({ setting }) => !(setting in inEnvironment))
    .map(({ setting, text }) => ({ at: location?.name, setting: ['store', setting].filter(Boolean).join('.'), text }));
  const problems = [...ofFile, ...ofSettings];
  if (problems.length === 0) return choice.server;
  throw new ConfigError(problems, { file: location?.name });
}

/** A file that this user may not read counts as one with a store, unless it is known from elsewhere where that is. */
function fileWithStore(sources: ConfigLocationSources, { isUrlElsewhere = false } = {}): ConfigLocation | undefined {
  const location = locateConfig(sources);
  try {
    return location && /(^|[\s{,])["']?store["']?\s*:/.test(readFileSync(location.path, 'utf8')) ? location : undefined;
  } catch (error) {
    return codeOf(error) === 'EACCES' && !isUrlElsewhere ? location : undefined; // whoever needs the file says what else is wrong with it
  }
}

function withoutEmpty(settings: StoreSettings): StoreSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value));
}
