import type { ServerAddress } from '../base/server-address.ts';

/** What a store's URL says. `password` is there only if it holds one. */
export type StoreUrl = Omit<ServerAddress, 'tls' | 'password'> & { password?: string };

/**
 * Reads `postgres://USER@HOST[:PORT]/DATABASE`, or with `?host=/DIRECTORY` the socket in a directory. The flaw is in words that repeat
 * nothing of it but the name of a parameter: it can hold a password.
 */
export function readStoreUrl(text: string): StoreUrl | { flaw: string } {
  if (/^postgres(ql)?:\/\/([^/?#]*@)?[^/?#@]*,[^/?#@]*([/?#]|$)/i.test(text.trim())) return { flaw: severalServers };
  const whole = text.trim().replace(/^(\w+:\/\/[^/?#]*@)(?=(:\d*)?\/)/, `$1${noHost}`);
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || !['postgres:', 'postgresql:'].includes(url.protocol) || url.hash !== '')
    return { flaw: expected };
  const { hostname, port, username, password, pathname, search, searchParams } = url;
  const stray = [...searchParams.keys()].find((name) => name !== 'host');
  if (stray !== undefined) {
    const name = /^\w{1,40}$/.test(stray) && !search.includes('@') ? stray : '…'; // behind an @, it is part of a password
    return {
      flaw: `has the parameter ${name}, which rankd does not know; TLS is set with store.tls and store.ca_file, the port after the host`,
    };
  }
  const hosts = searchParams.getAll('host');
  if (hosts.length > 1) return { flaw: severalServers };
  const [user, database, host] = [username, pathname.slice(1), hosts[0] ?? hostname.replace(noHost, '')].map(decoded);
  if (!user || !database || !host || pathname.slice(1).includes('/')) return { flaw: expected };
  if (host.includes(',')) return { flaw: severalServers };
  if (hosts.length > 0 && !host.startsWith('/')) return { flaw: 'has a host that is no directory of a socket' };
  if (port === '0') return { flaw: 'has the port 0, on which no server listens' };
  const given = decoded(password);
  return {
    ...{ host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 5432), user, database },
    ...(given && { password: given }),
  };
}

/** Stands in for a host that is left out, for which no URL has room. */
const noHost = 'nohost.invalid';

const severalServers = 'names several servers; give one name that always leads to the primary';

const expected =
  'is no URL of a store; expected postgres://USER@HOST/DATABASE or postgres://USER@HOST:PORT/DATABASE, with %40 for an @, %2F for a / and so on within a name or password';

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The URL as it may be shown. */
export function withoutPassword(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return '[redacted]';
  if (url.password !== '') url.password = '[redacted]';
  return url.href.replace('%5Bredacted%5D', '[redacted]');
}
