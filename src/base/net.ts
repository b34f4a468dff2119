import net, { type AddressInfo, isIP } from 'node:net';
import { codeOf, RankdError } from './errors.ts';

/**
 * Returns a service's base URL without a trailing slash; `undefined` if the text is not a base URL, or if it is neither
 * https nor on loopback, because a key could then be read in transit.
 */
export function asBaseUrl(text: string): string | undefined {
  if (!URL.canParse(text) || /[?#@\s]/.test(text)) return undefined;
  const { protocol, hostname, href } = new URL(text);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopbackName(hostname));
  return isSafe ? href.replace(/\/+$/, '') : undefined;
}

/** Expects a parsed URL's host name, in which an IPv4 address always has four numbers. */
function isLoopbackName(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

export function listenUrl({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Returns the URL at which programs on this machine can reach a server, even one that listens on all addresses. */
export function localUrl(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

export function isLoopback(address: string): boolean {
  return membershipOf(['127.0.0.0/8', '::1'])(address);
}

/**
 * Converts a listener's error to one for the operator. Returns an error from a bug in rankd unchanged. `portFrom` names
 * the variable that sets the port, if it does not come from a setting.
 */
export function listenError(
  cause: unknown,
  {
    host,
    port,
    hint,
    section,
    portFrom = `${section}.port`,
  }: {
    host: string;
    port: number;
    hint: string;
    section: 'server' | 'metrics' | 'dashboard';
    portFrom?: string | undefined;
  },
): unknown {
  const where = hostAndPort({ host, port });
  switch (codeOf(cause)) {
    case 'EADDRINUSE':
      return new RankdError('port_taken', `Another program is already listening on ${where} (${portFrom}).`, {
        cause,
        hint: `stop it, or choose a different port: ${hint}`,
      });
    case 'EACCES':
      return new RankdError('no_permission', `This user is not allowed to listen on ${where} (${portFrom}).`, {
        cause,
        hint: `choose ${port < 1024 ? 'port 1024 or higher' : 'a different port'}: ${hint}`,
      });
    case 'EADDRNOTAVAIL':
    case 'EAI_AGAIN':
    case 'ENOTFOUND':
      return new RankdError('config_invalid', `${host} is not an address of this machine.`, {
        cause,
        hint: `set ${section}.host to 127.0.0.1, or to 0.0.0.0 for all addresses`,
      });
    case 'EINVAL':
    case 'EAFNOSUPPORT':
      return new RankdError('config_invalid', `This machine can't listen on ${host}.`, {
        cause,
        hint: host.toLowerCase().startsWith('fe80:')
          ? `a link-local address needs its interface: set ${section}.host to ${host}%eth0, with the interface's name in place of eth0`
          : `set ${section}.host to 127.0.0.1, or to 0.0.0.0 for all addresses`,
      });
    default:
      return isSystemError(cause)
        ? new RankdError('config_invalid', `rankd can't listen on ${where} (${codeOf(cause)}).`, {
            cause,
            hint: `check ${section}.host and ${section}.port`,
          })
        : cause;
  }
}

/** An error from the operating system names the failed call; an error from a bug in rankd does not. */
function isSystemError(cause: unknown): boolean {
  return cause instanceof Error && 'syscall' in cause;
}

/**
 * Returns a function that checks whether an address is in a list of addresses and networks. It accepts IPv4 addresses
 * in IPv6 form (`::ffff:…`) and IPv6 addresses with a zone (`fe80::1%eth0`), and rejects invalid addresses.
 */
export function membershipOf(networks: readonly string[]): (address: string) => boolean {
  const list = new net.BlockList();
  for (const network of networks) {
    const [address = '', prefix = familyOf(network) === 'ipv6' ? '128' : '32'] = network.split('/');
    list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return (text) => {
    const [address = ''] = text.split('%', 1);
    return isIP(address) > 0 && list.check(address, familyOf(address));
  };
}

/** Expects a valid address. Avoids Node's `isIPv6`, whose first call takes 2 % of `serve`'s startup time. */
function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

/**
 * Returns the address of a request's sender: the connection's peer or, if that is a trusted proxy, the last address in
 * `X-Forwarded-For` that is not. Entries may have a port or brackets. If an entry is invalid, the sender is the proxy
 * that added it.
 */
export function senderOf(
  peer: string | undefined,
  forwardedFor: string | string[] | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let sender = peer ?? ''; // undefined once the peer has disconnected
  if (forwardedFor === undefined) return sender;
  for (const entry of String(forwardedFor).split(',').reverse()) {
    const address = isTrusted(sender) ? addressIn(entry.trim()) : undefined;
    if (address === undefined) return sender;
    sender = address;
  }
  return sender;
}

/** Parses an entry such as `203.0.113.7:5001`, `[2001:db8::1]:443` or `2001:db8::1`. */
function addressIn(entry: string): string | undefined {
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? [];
  const address = inBrackets ?? withPort ?? entry;
  return isIP(address) > 0 ? address : undefined;
}

export interface ServerAddress {
  /** A host name or address, or the directory of a Unix socket. */
  host: string;
  port: number;
  database: string;
  user: string;
  /** A function, so that logging the object can't reveal the password. */
  password?: (() => string) | undefined;
  /**
   * False: no TLS. `unchecked`: TLS without a certificate check. An object: TLS with a certificate check against `ca`
   * (PEM) or, if that is absent, the CAs that Node.js trusts.
   */
  tls: false | 'unchecked' | { ca?: string | undefined };
  /** Appended to `rankd` in the connections' application_name. */
  applicationName?: string;
  connectTimeoutMs?: number;
}

export function placeOf({ host, port, database }: ServerAddress): string {
  return isSocket(host) ? `${database} on the socket in ${host}` : `${database} on ${hostAndPort({ host, port })}`;
}

export function hostAndPort({ host, port }: Pick<ServerAddress, 'host' | 'port'>): string {
  if (isSocket(host)) return `${host}/.s.PGSQL.${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export function isSocket(host: string): boolean {
  return host.startsWith('/');
}

/** True if no other machine can eavesdrop on the connection. */
export function isOnThisMachine(host: string): boolean {
  return isSocket(host) || host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

const privateNetworks = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'],
  ...['::', '::1', 'fc00::/7', 'fe80::/10'],
];

export function isPrivate(address: string): boolean {
  return membershipOf(privateNetworks)(address);
}

/** True if an Accept-Encoding header names the encoding, unless its weight is 0. */
export function acceptsEncoding(header: string | string[] | undefined, encoding: 'br' | 'gzip'): boolean {
  return String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((part) => part.split(/;\s*q=/))
    .some(([name, weight = '1']) => name?.trim() === encoding && Number(weight) !== 0);
}
