import type { UnusedProxy } from './outbound-proxy.ts';

/**
 * The wording for one cause of a failed connection to Roblox, a webhook, PostgreSQL or the public address. `words` fits
 * after a colon or in parentheses. `hint` receives the address. A permanent cause does not go away until the operator
 * fixes it.
 */
interface Meaning {
  words: string;
  hint: (at: string) => string;
  isPermanent?: true;
}

const clock = "check this machine's date and time";

const meanings = {
  name_unknown: {
    words: 'its host name does not exist',
    hint: (at) => `check the spelling of ${at}, and that this machine's DNS server resolves public names`,
    isPermanent: true,
  },
  name_not_looked_up: {
    words: 'its host name could not be resolved',
    hint: () => 'check that this machine is online and that its DNS server responds',
  },
  refused: {
    words: 'it refuses connections',
    hint: (at) => `check that a server is listening at ${at} and that no firewall rejects connections to it`,
  },
  unreachable: {
    words: 'the network has no route to it',
    hint: (at) => `check this machine's network and firewall: they prevent connections to ${at}`,
  },
  timed_out: {
    words: 'it does not respond in time',
    hint: (at) => `check whether a firewall drops connections to ${at} or its server is overloaded`,
  },
  broken_off: {
    words: 'the connection was lost',
    hint: (at) =>
      `try again; if it keeps failing, check for a firewall, proxy or virus scanner between this machine and ${at}`,
  },
  certificate_untrusted: {
    words: 'its certificate is not trusted',
    hint: () =>
      'if a virus scanner or a company proxy inspects the traffic, trust its certificate authority: set NODE_EXTRA_CA_CERTS to the PEM file, or NODE_USE_SYSTEM_CA=1 (Node.js 22.19, 24.6 or newer)',
    isPermanent: true,
  },
  certificate_expired: {
    words: 'its certificate has expired',
    hint: (at) => `${clock}; if they are correct, ${at} needs a new certificate`,
    isPermanent: true,
  },
  certificate_not_yet_valid: {
    words: 'its certificate is not valid yet',
    hint: (at) => `${clock}; if they are correct, fix the clock of the machine that issued the certificate of ${at}`,
    isPermanent: true,
  },
  certificate_for_another_name: {
    words: 'its certificate is for a different name',
    hint: (at) => `check the address ${at}; on a network with a login page, log in first`,
    isPermanent: true,
  },
  no_tls: {
    words: 'it does not speak TLS',
    hint: (at) => `check the port of ${at}, and whether a firewall or a proxy responds in its place`,
    isPermanent: true,
  },
  tls_failed: {
    words: 'it has no TLS version or cipher in common with rankd',
    hint: (at) => `check which TLS versions ${at} accepts, and whether a proxy or virus scanner responds in its place`,
    isPermanent: true,
  },
  no_http: {
    words: 'it does not speak HTTP',
    hint: (at) => `check the port of ${at}, and whether its address should begin with https:// instead of http://`,
    isPermanent: true,
  },
  redirected: {
    words: 'it responds with a redirect',
    hint: (at) => `check the address ${at}; on a network with a login page, log in first`,
    isPermanent: true,
  },
  web_page: {
    words: 'a web page was returned instead',
    hint: (at) => `on a network with a login page, log in first; if there is none, check the address ${at}`,
    isPermanent: true,
  },
  proxy_refused: {
    words: 'the proxy does not allow the connection',
    hint: (at) => `check the proxy in HTTPS_PROXY or HTTP_PROXY, and that it allows connections to ${at}`,
    isPermanent: true,
  },
  failed: {
    words: 'the connection failed',
    hint: () => "check this machine's network; -v shows the underlying error",
  },
} as const satisfies Record<string, Meaning>;

export type ConnectionCause = keyof typeof meanings;

export const connectionCauses = Object.keys(meanings) as ConnectionCause[];

export interface ConnectionFailure {
  cause: ConnectionCause;
  /** e.g. `its host name does not exist (ENOTFOUND)`. It never contains an address. */
  words: string;
  hint: string;
  isPermanent: boolean;
}

/**
 * Derives the cause from a Node.js, undici or OpenSSL error. `at` is the address to name in the hint. `unusedProxy` is
 * a proxy that is configured but that rankd does not use, which explains the failure on many networks. `usedProxy` is
 * the variable that sets the proxy in use: if a lookup or connection fails, rankd could not reach that proxy.
 */
export function connectionFailure(
  error: unknown,
  { at, unusedProxy, usedProxy }: { at: string; unusedProxy?: UnusedProxy | undefined; usedProxy?: string | undefined },
): ConnectionFailure {
  const { cause, code } = knownCause(error) ?? { cause: 'failed' as const, code: codesIn(error)[0] };
  const { words, hint, ...meaning }: Meaning = meanings[cause];
  const described = code === undefined ? words : `${words} (${code})`;
  const isPermanent = meaning.isPermanent ?? false;
  if (usedProxy !== undefined && firstCauses.has(cause)) {
    const proxy = `the proxy in ${usedProxy}`;
    return {
      cause,
      words: `${proxy} can't be reached because ${described}`,
      hint: `check the address of ${proxy}, and that the proxy is running`,
      isPermanent,
    };
  }
  const isProxyMissing = unusedProxy !== undefined && reachCauses.has(cause);
  return {
    cause,
    words: isProxyMissing ? `${described}, and rankd does not use the proxy in ${unusedProxy.variable}` : described,
    hint: isProxyMissing ? useProxy(unusedProxy) : hint(at),
    isPermanent,
  };
}

/**
 * Thrown when one of rankd's own time limits expires. The message names the operation and the limit, and is shown in
 * parentheses after the cause.
 */
export class TimedOut extends Error {
  override readonly name = 'TimeoutError';
}

export function causeOf(error: unknown): ConnectionCause | undefined {
  return knownCause(error)?.cause;
}

/**
 * The Node.js versions whose `fetch` and `https` both support NODE_USE_ENV_PROXY. They read only HTTPS_PROXY and
 * HTTP_PROXY, in upper or lower case.
 */
const proxyVersions = 'Node.js 22.21, 24.5 or newer';

export function useProxy({ variable, tooOldNode }: UnusedProxy): string {
  if (tooOldNode !== undefined)
    return `to use the proxy, start rankd with ${proxyVersions}: NODE_USE_ENV_PROXY does not work on Node.js ${tooOldNode}`;
  const name = /^all_proxy$/i.test(variable)
    ? `set HTTPS_PROXY to the value of ${variable} (it must begin with http:// or https://), and also `
    : '';
  return `to use the proxy, ${name}set NODE_USE_ENV_PROXY=1 in rankd's environment (${proxyVersions})`;
}

/** Causes that occur only before a connection opens. With a proxy, they mean that rankd could not reach the proxy. */
const firstCauses: ReadonlySet<ConnectionCause> = new Set([
  'name_unknown',
  'name_not_looked_up',
  'refused',
  'unreachable',
]);

/** On a network that allows connections only through its proxy, direct connections fail with one of these causes. */
const reachCauses: ReadonlySet<ConnectionCause> = new Set([...firstCauses, 'timed_out', 'broken_off']);

const byCode: Readonly<Record<string, ConnectionCause>> = {
  ENOTFOUND: 'name_unknown',
  ENODATA: 'name_unknown',
  EAI_AGAIN: 'name_not_looked_up',
  EAI_FAIL: 'name_not_looked_up',
  ESERVFAIL: 'name_not_looked_up',
  ETIMEOUT: 'name_not_looked_up',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ENETDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EAFNOSUPPORT: 'unreachable',
  ETIMEDOUT: 'timed_out',
  ERR_SOCKET_CONNECTION_TIMEOUT: 'timed_out',
  UND_ERR_CONNECT_TIMEOUT: 'timed_out',
  UND_ERR_HEADERS_TIMEOUT: 'timed_out',
  UND_ERR_BODY_TIMEOUT: 'timed_out',
  ECONNRESET: 'broken_off',
  ECONNABORTED: 'broken_off',
  EPIPE: 'broken_off',
  ERR_STREAM_PREMATURE_CLOSE: 'broken_off',
  UND_ERR_SOCKET: 'broken_off',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'certificate_untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate_untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate_untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'certificate_untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate_untrusted',
  UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY: 'certificate_untrusted',
  UNABLE_TO_DECRYPT_CERT_SIGNATURE: 'certificate_untrusted',
  UNABLE_TO_GET_CRL: 'certificate_untrusted',
  CERT_SIGNATURE_FAILURE: 'certificate_untrusted',
  CERT_CHAIN_TOO_LONG: 'certificate_untrusted',
  CERT_REVOKED: 'certificate_untrusted',
  CERT_UNTRUSTED: 'certificate_untrusted',
  CERT_REJECTED: 'certificate_untrusted',
  ERROR_IN_CERT_NOT_BEFORE_FIELD: 'certificate_untrusted',
  ERROR_IN_CERT_NOT_AFTER_FIELD: 'certificate_untrusted',
  INVALID_CA: 'certificate_untrusted',
  INVALID_PURPOSE: 'certificate_untrusted',
  PATH_LENGTH_EXCEEDED: 'certificate_untrusted',
  UNSPECIFIED: 'certificate_untrusted', // any other OpenSSL certificate error
  CERT_HAS_EXPIRED: 'certificate_expired',
  CERT_NOT_YET_VALID: 'certificate_not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate_for_another_name',
  HOSTNAME_MISMATCH: 'certificate_for_another_name',
  ERR_PROXY_TUNNEL: 'proxy_refused',
  ERR_PROXY_INVALID_CONFIG: 'proxy_refused',
  UND_ERR_PRX_TLS: 'proxy_refused',
};

/** Matches the messages of errors whose code is missing or ambiguous. */
const byText: ReadonlyArray<[RegExp, ConnectionCause]> = [
  [/wrong version number|packet length too long|record layer failure|establishing an SSL connection/i, 'no_tls'],
  [/Proxy response/, 'proxy_refused'],
  [/redirect/, 'redirected'],
  [/web page instead of JSON/, 'web_page'],
  [/^timeout expired$/, 'timed_out'],
  [/without an answer|terminated unexpectedly|was closed|other side closed/i, 'broken_off'],
];

interface Known {
  cause: ConnectionCause;
  code: string | undefined;
}

/**
 * From least to most informative. If several addresses of a host fail, the most informative cause is reported, such as
 * a refusal rather than a missing route.
 */
const byWeight: readonly ConnectionCause[] = ['unreachable', 'timed_out', 'broken_off', 'refused'];

function knownCause(error: unknown, depth = 0): Known | undefined {
  if (!(error instanceof Error) || depth > maxDepth) return undefined;
  if (error instanceof AggregateError) {
    const each = error.errors.flatMap((one) => knownCause(one, depth + 1) ?? []);
    return each.toSorted((one, other) => byWeight.indexOf(other.cause) - byWeight.indexOf(one.cause))[0];
  }
  const own = ownCause(error);
  if (own !== undefined && own.cause !== 'timed_out') return own;
  return knownCause(error.cause, depth + 1) ?? own; // undici wraps a proxy's refusal in an AbortError
}

/** Limits the recursion, because `cause` chains can be circular. */
const maxDepth = 8;

function ownCause(error: Error): Known | undefined {
  const { code, syscall } = error as NodeJS.ErrnoException;
  const [, causeByText] = byText.find(([text]) => text.test(error.message)) ?? [];
  if (causeByText !== 'proxy_refused' && (error.name === 'AbortError' || error.name === 'TimeoutError'))
    return { cause: 'timed_out', code: error instanceof TimedOut ? error.message : undefined };
  if (typeof code !== 'string') return causeByText && { cause: causeByText, code: undefined };
  const cause = byCode[code] ?? causeByText ?? ofFamily(code, syscall);
  return cause && { cause, code };
}

function ofFamily(code: string, syscall: string | undefined): ConnectionCause | undefined {
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_') || code === 'ERR_TLS_PROTOCOL_VERSION_CONFLICT')
    return 'tls_failed';
  if (code.startsWith('HPE_')) return 'no_http';
  if (syscall !== 'connect') return undefined;
  if (code === 'ENOENT') return 'refused'; // the Unix socket's file is missing
  return code === 'EACCES' || code === 'EPERM' ? 'unreachable' : undefined;
}

function codesIn(error: unknown, depth = 0): string[] {
  if (!(error instanceof Error) || depth > maxDepth) return [];
  const { code } = error as NodeJS.ErrnoException;
  return [
    ...(typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code) ? [code] : []),
    ...codesIn(error.cause, depth + 1),
  ];
}
