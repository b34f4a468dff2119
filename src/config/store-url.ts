import type { ServerAddress } from '../base/server-address.ts';

/** What a store's URL says. `password` is there only if it holds one. */
export type StoreUrl = Omit<ServerAddress, 'tls' | 'password'> & { password?: string };

/**
 * Reads `postgres://USER@HOST[:PORT]/DATABASE`, or with `?host=/DIRECTORY` the socket in a directory. The flaw is in words that repeat
 * nothing of it: it can hold a password.
 */
export function readStoreUrl(text: string): StoreUrl | { flaw: string } {
  const whole = text.replace(/^(\w+:\/\/[^/?#]*@)\//, `$1${noHost}/`);
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || !['postgres:', 'postgresql:'].includes(url.protocol)) return { flaw: expected };
  const { hostname, port, username, password, pathname, searchParams } = url;
  const stray = [...searchParams.keys()].find((name) => name !== 'host');
  if (stray !== undefined)
    return {
      flaw: `has the parameter ${/^\w{1,40}$/.test(stray) ? stray : '…'}, which rankd does not know; TLS is set with store.tls and store.ca_file`,
    };
  if (url.hash !== '') return { flaw: expected };
  const [user, database, host] = [
    username,
    pathname.slice(1),
    searchParams.get('host') ?? hostname.replace(noHost, ''),
  ].map(decoded);
  if (user === undefined || database === undefined || host === undefined) return { flaw: expected };
  if (host.includes(',')) return { flaw: 'names several servers; give one name that always leads to the primary' };
  if (searchParams.has('host') && !host.startsWith('/')) return { flaw: 'has a host that is no directory of a socket' };
  if (host === '' || user === '' || database === '' || database.includes('/')) return { flaw: expected };
  const given = decoded(password);
  return {
    ...{ host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 5432), user, database },
    ...(given && { password: given }),
  };
}

/** Stands in for a host that is left out, for which no URL has room. */
const noHost = 'nohost.invalid';

const expected = 'is no URL of a store; expected postgres://USER@HOST/DATABASE';

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
