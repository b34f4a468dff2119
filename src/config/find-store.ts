import { dirname } from 'node:path';
import { codeOf, RankdError } from '../base/errors.ts';
import type { ServerAddress } from '../base/net.ts';
import { readAtMost } from '../base/read-file.ts';
import {
  type ConfigLocation,
  type ConfigLocationSources,
  isPresent,
  locateConfig,
  maxConfigBytes,
  trustedConfig,
  unreadableConfig,
} from './locate.ts';
import { ConfigError, type Problem } from './problem.ts';
import { chooseStore, type StoreSettings, tlsModes } from './store-choice.ts';

/**
 * Finds the store for commands that need no other settings. Returns `undefined` for SQLite, which rankd uses if
 * RANKD_STORE_URL is not set and the file has no `store` section. Otherwise, returns a function that reads only that
 * section, so that mistakes elsewhere in the file do not stop the command.
 */
export function storeFinder(sources: ConfigLocationSources): (() => Promise<ServerAddress | undefined>) | undefined {
  const location = sources.env['RANKD_STORE_URL'] ? undefined : fileWithStore(sources);
  if (!sources.env['RANKD_STORE_URL'] && location === undefined) return undefined;
  return () => findStore(sources);
}

/**
 * Returns the server that a URL on the command line names. The other store settings (password, CA, TLS) apply to it,
 * too.
 */
export async function storeNamed(sources: ConfigLocationSources, named: NamedStore): Promise<ServerAddress> {
  const server = await findStore(sources, named);
  if (server === undefined) throw new TypeError('a URL names a server');
  return server;
}

interface NamedStore {
  url: string;
  option: string;
}

async function findStore(sources: ConfigLocationSources, named?: NamedStore): Promise<ServerAddress | undefined> {
  const { env, cwd } = sources;
  const isUrlElsewhere = Boolean(named?.url ?? env['RANKD_STORE_URL']);
  const location = fileWithStore(sources, { isUrlElsewhere }) && trustedConfig(sources);
  const section = location === undefined ? { settings: {}, problems: [] } : await readStoreSection(location);
  const inEnvironment = withoutEmpty({
    url: named?.url ?? env['RANKD_STORE_URL'],
    password_file: env['RANKD_STORE_PASSWORD_FILE'],
    ca_file: env['RANKD_STORE_CA_FILE'],
    tls: env['RANKD_STORE_TLS'],
  });
  const settings: StoreSettings = { ...section.settings, ...inEnvironment };
  const choice = chooseStore({
    settings,
    env,
    isUrlInFile: inEnvironment.url === undefined,
    folderOf: (setting) => (inEnvironment[setting] === undefined && location ? dirname(location.path) : cwd),
  });
  const ofTls =
    settings.tls === undefined || tlsModes.some((mode) => mode === settings.tls)
      ? []
      : [{ setting: 'tls' as const, text: `expected one of ${tlsModes.join(', ')}` }];
  const ofSettings = [...ofTls, ...choice.problems].map(({ setting, text }): Problem => {
    if (inEnvironment[setting] === undefined) return { at: location?.name, setting: `store.${setting}`, text };
    return { at: named && setting === 'url' ? named.option : `RANKD_STORE_${setting.toUpperCase()}`, text };
  });
  const ofFile = section.problems
    .filter(({ setting }) => !(setting in inEnvironment))
    .map(({ setting, text }) => ({ at: location?.name, setting: ['store', setting].filter(Boolean).join('.'), text }));
  const problems = [...ofFile, ...ofSettings];
  if (problems.length === 0) return choice.server;
  throw new ConfigError(problems, { file: location?.name });
}

/**
 * Returns the file if it has a `store` section. Assumes that an unreadable one has it, unless the URL is set elsewhere.
 */
function fileWithStore(sources: ConfigLocationSources, { isUrlElsewhere = false } = {}): ConfigLocation | undefined {
  const location = locateConfig(sources);
  try {
    return location && /(^|[\s{,])["']?store["']?\s*:/.test(readAtMost(location.path, maxConfigBytes).toString())
      ? location
      : undefined;
  } catch {
    return location && isPresent(location.path) && !isUrlElsewhere ? location : undefined; // init creates a missing file
  }
}

function withoutEmpty(settings: StoreSettings): StoreSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value));
}

interface StoreSection {
  settings: StoreSettings;
  /** `setting` is the name within the section; empty for the section itself. */
  problems: Array<{ setting: string; text: string }>;
}

/**
 * Reports mistakes, because a command must not fall back to SQLite or to a connection without TLS, but ignores invalid
 * YAML if the file contains no PostgreSQL URL. Leaves out the parser's messages, because they quote text that may be a
 * secret.
 */
async function readStoreSection(location: ConfigLocation): Promise<StoreSection> {
  const text = readText(location);
  const document = await parseYaml(text);
  if (document === 'invalid') {
    const isServer = /^[^#]*\bpostgres(ql)?:\/\//im.test(text);
    return { settings: {}, problems: isServer ? [{ setting: '', text: unreadableSection }] : [] };
  }
  const section: unknown = document?.store;
  if (section === undefined || section === null) return { settings: {}, problems: [] };
  if (typeof section !== 'object' || Array.isArray(section))
    return { settings: {}, problems: [{ setting: '', text: 'expected a mapping of settings' }] };
  const entries = Object.entries(section).filter(([, value]) => value !== null);
  const problems = entries.flatMap(([setting, value]) => {
    if (!storeSettings.has(setting)) return [{ setting, text: 'unknown setting' }];
    return typeof value === 'string' ? [] : [{ setting, text: 'expected text' }];
  });
  return { settings: Object.fromEntries(entries.filter(([, value]) => typeof value === 'string')), problems };
}

const storeSettings = new Set(['url', 'password_file', 'ca_file', 'tls', 'node']);

const unreadableSection =
  'the file is invalid YAML, so rankd cannot read its store section; rankd config check shows the mistake';

/** Loads the parser on demand, because most commands never need it. */
async function parseYaml(text: string): Promise<{ store?: unknown } | null | 'invalid'> {
  const { parseDocument } = (await import('yaml')).default; // a bundled CommonJS package has no other export
  const document = parseDocument(text, { logLevel: 'silent', prettyErrors: false });
  if (document.errors.length > 0) return 'invalid';
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    return 'invalid';
  }
}

function readText({ path, name }: ConfigLocation): string {
  try {
    return readAtMost(path, maxConfigBytes)
      .toString()
      .replace(/^\uFEFF/, '');
  } catch (cause) {
    if (codeOf(cause) !== 'EACCES') throw unreadableConfig({ path, name }, cause);
    const message = `This user is not allowed to read ${name}, so rankd cannot determine which store to open.`;
    throw new RankdError('no_permission', message, {
      hint: "run the command as the daemon's user, or give this user read access to the file",
      cause,
    });
  }
}
