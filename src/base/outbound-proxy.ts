/**
 * The proxy that the environment configures for outgoing connections. Contains only the variables' names, because the
 * proxy's address may contain a password.
 */
export interface OutboundProxy {
  /** The variable that sets the proxy for each protocol. */
  variables: { https?: string; http?: string };
  /** Hosts to connect to directly: `*`, or `example.com` including its subdomains, with or without a port. */
  exceptions: string[];
  /** `used`, or the reason why Node.js does not use the proxy. */
  use: 'used' | 'not asked for' | { tooOldNode: string };
}

export interface NodeStart {
  /** E.g. `22.14.0`. */
  version: string;
  /** The Node.js options on the command line. */
  options: readonly string[];
}

export interface UnusedProxy {
  variable: string;
  /** Present if NODE_USE_ENV_PROXY is set, but Node.js is too old for it. */
  tooOldNode?: string;
}

export function outboundProxy(env: Record<string, string | undefined>, node?: NodeStart): OutboundProxy | undefined {
  const set = (...names: string[]) => names.find((name) => (env[name] ?? '').trim() !== '');
  const https = set('https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY');
  const http = set('http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY');
  if (https === undefined && http === undefined) return undefined;
  return {
    variables: { ...(https !== undefined && { https }), ...(http !== undefined && { http }) },
    exceptions: (env[set('no_proxy', 'NO_PROXY') ?? ''] ?? '')
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean),
    use: useOf(env, node),
  };
}

/** An option overrides NODE_USE_ENV_PROXY. The last option wins, and the command line comes after NODE_OPTIONS. */
function useOf(env: Record<string, string | undefined>, node: NodeStart | undefined): OutboundProxy['use'] {
  const options = [...(env['NODE_OPTIONS'] ?? '').split(/\s+/), ...(node?.options ?? [])];
  const option = options.findLast((one) => /^--(no-)?use[-_]env[-_]proxy$/.test(one));
  const isEnabled = option === undefined ? env['NODE_USE_ENV_PROXY'] === '1' : !option.startsWith('--no-');
  if (!isEnabled) return 'not asked for';
  return node === undefined || goesThroughProxies(node.version) ? 'used' : { tooOldNode: node.version };
}

/**
 * True if both `fetch` and `https` support proxies: https://nodejs.org/docs/latest-v24.x/api/cli.html#--use-env-proxy
 */
function goesThroughProxies(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
}

/** Returns the variable that sets the proxy for this address; `undefined` if rankd should connect directly. */
export function proxyFor(address: string, proxy: OutboundProxy | undefined): string | undefined {
  if (proxy === undefined) return undefined;
  const { protocol, hostname, port } = new URL(address);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isExempt = proxy.exceptions.some((exception) => {
    const [, name = '', itsPort] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(exception) ?? [];
    if (exception === '*') return true;
    const isSamePort = itsPort === undefined || itsPort === (port || defaultPorts[protocol]);
    return isSamePort && name !== '' && (host === name || host.endsWith(`.${name}`));
  });
  return isExempt ? undefined : proxy.variables[protocol === 'https:' ? 'https' : 'http'];
}

/**
 * Returns the proxy that is configured for this address if rankd does not use it. Node.js does not support ALL_PROXY.
 */
export function unusedProxyFor(address: string, proxy: OutboundProxy | undefined): UnusedProxy | undefined {
  const variable = proxyFor(address, proxy);
  if (proxy === undefined || variable === undefined) return undefined;
  if (typeof proxy.use === 'object') return { variable, ...proxy.use };
  return proxy.use === 'used' && !/^all_proxy$/i.test(variable) ? undefined : { variable };
}

/**
 * Returns the variable that sets the proxy through which rankd connects to this address; `undefined` if rankd connects
 * directly.
 */
export function usedProxyFor(address: string, proxy: OutboundProxy | undefined): string | undefined {
  return unusedProxyFor(address, proxy) === undefined ? proxyFor(address, proxy) : undefined;
}

const defaultPorts: Record<string, string> = { 'https:': '443', 'http:': '80' };
