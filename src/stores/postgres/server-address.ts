/** Where a PostgreSQL server is, and how rankd gets in. */
export interface ServerAddress {
  /** A host name or address, or the directory of a socket. */
  host: string;
  port: number;
  database: string;
  user: string;
  password?: string | undefined;
  /** False: no TLS. Otherwise the server's certificate is checked, by these authorities (PEM) or, without any, the system's. */
  tls: false | { ca?: string | undefined };
}

/** The server as messages name it. It never holds a password. */
export function placeOf({ host, port, database }: ServerAddress): string {
  return host.startsWith('/') ? `${database} on the socket in ${host}` : `${database} on ${host}:${port}`;
}
