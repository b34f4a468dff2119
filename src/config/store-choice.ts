import { resolve } from 'node:path';
import { isOnThisMachine, isSocket, type ServerAddress } from '../base/net.ts';
import { crypto } from '../base/node-modules.ts';
import { inQuotes } from './problem.ts';
import { findSecret, passwordVariable, readSecretText } from './secret.ts';

export const tlsModes = ['verify', 'require', 'off'] as const;
type TlsMode = (typeof tlsModes)[number];

export interface StoreSettings {
  url?: string | undefined;
  password_file?: string | undefined;
  ca_file?: string | undefined;
  tls?: string | undefined;
  node?: string | undefined;
}

interface StoreSources {
  settings: StoreSettings;
  env: Record<string, string | undefined>;
  /** A URL in the file must not contain a password. */
  isUrlInFile: boolean;
  /** Returns the folder against which a relative path in `setting` is resolved. */
  folderOf(setting: keyof StoreSettings): string;
}

interface StoreChoice {
  /** Absent if there are problems, and for SQLite in the data directory. */
  server?: ServerAddress;
  problems: Array<{ setting: keyof StoreSettings; text: string }>;
  warnings: string[];
}

/** Returns the server's address and secrets, or the problems with the settings. The problems contain no secrets. */
export function chooseStore({ settings, env, isUrlInFile, folderOf }: StoreSources): StoreChoice {
  const { url, password_file: passwordFile } = settings;
  if (url === undefined) return { problems: [], warnings: withoutUrl(settings, env) };
  const problem = (setting: keyof StoreSettings, text: string) => ({ problems: [{ setting, text }], warnings: [] });
  const read = readStoreUrl(url);
  if ('flaw' in read) return problem('url', read.flaw);
  const { sslmode, sslrootcert, ...address } = read;
  const inUrl = sslmode && tlsOfMode[sslmode];
  if (inUrl !== undefined && settings.tls !== undefined && inUrl !== settings.tls)
    return problem('tls', `is ${settings.tls}, but sslmode=${sslmode} in store.url means ${inUrl}; remove one of them`);
  if (sslrootcert !== undefined && settings.ca_file !== undefined)
    return problem('ca_file', 'is set, but store.url also has the parameter sslrootcert; remove one of them');
  const tls = settings.tls ?? inUrl;
  const ofTls = settings.tls === undefined ? 'url' : 'tls';
  const verifying = settings.tls === undefined ? 'sslmode=verify-full' : 'verify';
  const asked = settings.tls === undefined ? `requests TLS (sslmode=${sslmode})` : `is ${tls}`;
  if (address.password !== undefined && isUrlInFile) {
    return problem(
      'url',
      `contains a password; a secret never goes here: name its file in store.password_file or set ${passwordVariable}`,
    );
  }
  const password = passwordOf(address.password, {
    file: passwordFile && resolve(folderOf('password_file'), passwordFile),
    env,
  });
  if ('problem' in password) return problem('password_file', password.problem);
  const ofCa = sslrootcert === undefined ? 'ca_file' : 'url';
  const caFile = sslrootcert ?? settings.ca_file;
  const authority: ReturnType<typeof readAuthority> =
    caFile === undefined ? {} : readAuthority(resolve(folderOf(ofCa), caFile));
  if ('problem' in authority) return problem(ofCa, authority.problem);
  const { text } = password;
  const isLocal = isSocket(address.host);
  if (isLocal && tls !== undefined && tls !== 'off')
    return problem(ofTls, `${asked}, but a socket has no TLS; remove ${settings.tls === undefined ? 'sslmode' : 'it'}`);
  if (tls === 'require' && caFile !== undefined)
    return problem(ofTls, `${asked}, which does not check the certificate, but a CA is set; use ${verifying} instead`);
  if (tls === 'require' && text === undefined) return problem(ofTls, `${asked}, ${needsPassword}, or use ${verifying}`);
  const isTls =
    tls === undefined ? !isOnThisMachine(address.host) || (caFile !== undefined && !isLocal) : tls !== 'off';
  return {
    server: {
      ...address,
      password: text === undefined ? undefined : () => text,
      tls: isTls && (tls === 'require' ? 'unchecked' : authority),
    },
    problems: [],
    warnings: password.warning === undefined ? [] : [password.warning],
  };
}

/** Warns about store settings without a URL, because the operator probably wants PostgreSQL. */
function withoutUrl(settings: StoreSettings, env: StoreSources['env']): string[] {
  const set = Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : `store.${name}`));
  const all = [...set, ...(env[passwordVariable] ? [passwordVariable] : [])];
  if (all.length === 0) return [];
  return [`There is no store.url, so rankd uses SQLite and ignores ${all.join(', ')}.`];
}

const needsPassword = `which needs a password, because only the password authenticates a server with an unchecked certificate: set ${passwordVariable} or store.password_file`;

const tlsOfMode: Partial<Record<string, TlsMode>> = {
  disable: 'off',
  prefer: 'require',
  require: 'require',
  'verify-ca': 'verify',
  'verify-full': 'verify',
};

interface StoreUrl extends Omit<ServerAddress, 'tls' | 'password'> {
  password?: string;
  sslmode?: string | undefined;
  sslrootcert?: string | undefined;
}

const parameters: Record<string, { isValid(text: string): boolean; expected: string }> = {
  host: { isValid: (text) => text.startsWith('/'), expected: 'the directory of a socket' },
  sslmode: {
    isValid: (text) => Object.hasOwn(tlsOfMode, text),
    expected: `one of ${Object.keys(tlsOfMode).join(', ')}`,
  },
  sslrootcert: { isValid: (text) => text !== '', expected: 'the path of a certificate (PEM)' },
  application_name: { isValid: (text) => /^[ -~]{1,63}$/.test(text), expected: '1 to 63 printable ASCII characters' },
  connect_timeout: { isValid: (text) => /^[1-9]\d?$/.test(text), expected: 'a number of seconds from 1 to 99' },
  pgbouncer: { isValid: (text) => text === 'true' || text === 'false', expected: 'true or false' },
};

/**
 * Parses `postgres://USER@HOST[:PORT]/DATABASE`, or a socket's directory as `?host=/DIRECTORY`. The URL may contain a
 * password, so a flaw quotes only parameter names.
 */
function readStoreUrl(text: string): StoreUrl | { flaw: string } {
  if (/^postgres(ql)?:\/\/([^/?#]*@)?[^/?#@]*,[^/?#@]*([/?#]|$)/i.test(text.trim())) return { flaw: severalServers };
  if (/^\s*["']/.test(text)) return { flaw: inQuotes };
  const whole = text.trim().replace(/^(\w+:\/\/[^/?#]*@)(?=(:\d*)?\/)/, `$1${noHost}`);
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || !['postgres:', 'postgresql:'].includes(url.protocol) || url.hash !== '')
    return { flaw: expectedUrl };
  const { hostname, port, username, password, pathname, search, searchParams } = url;
  const stray = [...searchParams.keys()].find((name) => !Object.hasOwn(parameters, name));
  if (stray !== undefined) {
    const name = /^\w{1,40}$/.test(stray) && !search.includes('@') ? stray : '…'; // `stray` can be part of a password
    return {
      flaw: `has the parameter ${name}, which rankd does not support; it supports ${Object.keys(parameters).join(', ')}`,
    };
  }
  const hosts = searchParams.getAll('host');
  if (hosts.length > 1) return { flaw: severalServers };
  const [user, database, host] = [username, pathname.slice(1), hosts[0] ?? hostname.replace(noHost, '')].map(decoded);
  if (!user || !database || !host || pathname.slice(1).includes('/')) return { flaw: expectedUrl };
  if (host.includes(',')) return { flaw: severalServers };
  for (const [name, { isValid, expected }] of Object.entries(parameters)) {
    const [value, ...more] = searchParams.getAll(name);
    if (more.length > 0) return { flaw: `has the parameter ${name} twice` };
    if (value !== undefined && !isValid(value))
      return { flaw: `has an invalid parameter ${name}; expected ${expected}` };
  }
  if (port === '0') return { flaw: 'has the port 0, on which no server listens' };
  const given = decoded(password);
  const [applicationName, seconds] = ['application_name', 'connect_timeout'].map((name) => searchParams.get(name));
  return {
    sslmode: searchParams.get('sslmode') ?? undefined,
    sslrootcert: searchParams.get('sslrootcert') ?? undefined,
    ...(applicationName && { applicationName }),
    ...(seconds && { connectTimeoutMs: Number(seconds) * 1_000 }),
    ...{ host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 5432), user, database },
    ...(given && { password: given }),
  };
}

/** A placeholder for a missing host, because URL syntax requires a host after a user. */
const noHost = 'nohost.invalid';

const severalServers = 'names several servers; use one name that always points to the primary';

const expectedUrl =
  'is not a store URL; expected postgres://USER@HOST/DATABASE or postgres://USER@HOST:PORT/DATABASE; within a name or password, write %40 for an @, %2F for a / and so on';

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads the password from the first of these that is set: the variable, the URL, the systemd credential
 * `store_password`, the file.
 */
function passwordOf(
  inUrl: string | undefined,
  { file, env }: { file: string | undefined; env: Record<string, string | undefined> },
): { text?: string; warning?: string } | { problem: string } {
  if (inUrl && !env[passwordVariable]?.trim()) return { text: inUrl };
  return findSecret(env, { variable: passwordVariable, credential: 'store_password', file, what: 'password' });
}

function readAuthority(path: string): { ca?: string } | { problem: string } {
  const read = readSecretText(path, { checksMode: false }); // certificates are public
  if ('problem' in read) return read;
  const { text: ca } = read;
  try {
    new (crypto().X509Certificate)(ca);
    return { ca };
  } catch {
    return { problem: `${path} does not contain a PEM certificate` };
  }
}

/** Redacts the password or, if the text is not a URL, all of it. */
export function withoutPassword(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return '[redacted]';
  if (url.password !== '') url.password = '[redacted]';
  return url.href.replace('%5Bredacted%5D', '[redacted]');
}
