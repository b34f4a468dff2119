/** Where a PostgreSQL server is, and how rankd gets in. */
export interface ServerAddress {
  /** A host name or address, or the directory of a socket. */
  host: string;
  port: number;
  database: string;
  user: string;
  /** A function, so that nothing prints it. */
  password?: (() => string) | undefined;
  /** False: no TLS. Otherwise the server's certificate is checked, by these authorities (PEM) or, without any, the system's. */
  tls: false | { ca?: string | undefined };
}

/** The server as messages name it. It never holds a password. */
export function placeOf({ host, port, database }: ServerAddress): string {
  return isSocket(host) ? `${database} on the socket in ${host}` : `${database} on ${hostAndPort({ host, port })}`;
}

/** What it listens on: `HOST:PORT`, or the file of its socket. */
export function hostAndPort({ host, port }: Pick<ServerAddress, 'host' | 'port'>): string {
  if (isSocket(host)) return `${host}/.s.PGSQL.${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Whether a host is the directory of a socket. */
export function isSocket(host: string): boolean {
  return host.startsWith('/');
}

/** Whether nobody else can listen to what goes there. */
export function isOnThisMachine(host: string): boolean {
  return isSocket(host) || host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
