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
  return host.startsWith('/') ? `${database} on the socket in ${host}` : `${database} on ${host}:${port}`;
}

/** Whether nobody else can listen to what goes there. */
export function isOnThisMachine(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
