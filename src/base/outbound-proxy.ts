/** The proxy that the environment names for what leaves this machine. It holds names of variables, never an address: that can have a password. */
export interface OutboundProxy {
  /** The variable that names the proxy for each protocol. */
  variables: { https?: string; http?: string };
  /** Hosts that are called without it: `*`, `example.com` with all below it, each with or without a port. */
  exceptions: string[];
  /** True if Node.js was told to use it. */
  isUsed: boolean;
}

/** `undefined` if no variable names one. */
export function outboundProxy(env: Record<string, string | undefined>): OutboundProxy | undefined {
  const set = (...names: string[]) => names.find((name) => (env[name] ?? '').trim() !== '');
  const https = set('https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY');
  const http = set('http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY');
  if (https === undefined && http === undefined) return undefined;
  const isTold = env['NODE_USE_ENV_PROXY'] === '1' || /--use-env-proxy\b/.test(env['NODE_OPTIONS'] ?? '');
  return {
    variables: { ...(https !== undefined && { https }), ...(http !== undefined && { http }) },
    exceptions: (env[set('no_proxy', 'NO_PROXY') ?? ''] ?? '')
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean),
    isUsed: isTold,
  };
}

/** The variable with the proxy for this address; `undefined` if there is none for it. */
export function proxyFor(address: string, proxy: OutboundProxy | undefined): string | undefined {
  if (proxy === undefined) return undefined;
  const { protocol, hostname, port } = new URL(address);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isExcepted = proxy.exceptions.some((exception) => {
    const [, name = '', itsPort] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(exception) ?? [];
    if (exception === '*') return true;
    const isSamePort = itsPort === undefined || itsPort === (port || defaultPorts[protocol]);
    return isSamePort && name !== '' && (host === name || host.endsWith(`.${name}`));
  });
  return isExcepted ? undefined : proxy.variables[protocol === 'https:' ? 'https' : 'http'];
}

/** The same, if rankd connects without it. Node.js knows no ALL_PROXY. */
export function unusedProxyFor(address: string, proxy: OutboundProxy | undefined): string | undefined {
  const variable = proxyFor(address, proxy);
  return proxy?.isUsed && !/^all_proxy$/i.test(variable ?? '') ? undefined : variable;
}

const defaultPorts: Record<string, string> = { 'https:': '443', 'http:': '80' };
