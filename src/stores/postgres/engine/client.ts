import { lstatSync, realpathSync, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { RankdError } from '../../../base/errors.ts';
import { hostAndPort, isSocket, type ServerAddress } from '../../../base/net.ts';
import { ownUid } from '../../../base/system.ts';
import { sqlName } from '../../../base/text.ts';
import { types } from './statements.ts';

const connectTimeoutMs = 3_000;
const answerTimeoutMs = 5_000;

/** Fields of `pg.Client` that its type declarations omit. */
interface Internals {
  processID: number | null;
  binary: boolean;
  /** `undefined` before SCRAM begins, and `null` once the server has proved that it knows the password. */
  saslSession?: object | null;
  getStartupConf(): Record<string, string>;
  connection: { stream: Socket; password(text: string): void } & NodeJS.EventEmitter;
}

export function internalsOf(client: pg.Client): Internals {
  return client as unknown as Internals;
}

/**
 * Returns a client that ignores PGOPTIONS, PGPASSWORD and ~/.pgpass. Without verified TLS, it never sends the password
 * in cleartext or as MD5.
 */
export function makeClient(address: ServerAddress): pg.Client {
  const { host, port, database, user, password, tls, applicationName } = address;
  const ca = tls !== false && tls !== 'unchecked' ? tls.ca : undefined;
  const client = new pg.Client({
    ...{ host, port, database, user, types, pipeline: true, sslnegotiation: 'postgres' },
    password: () => password?.() ?? '', // a function, because the driver reads PGPASSWORD if given an empty string
    ssl: tls && { rejectUnauthorized: tls !== 'unchecked', ...(ca !== undefined && { ca }) },
    enableChannelBinding: tls !== false,
    connectionTimeoutMillis: address.connectTimeoutMs ?? connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
  } as pg.ClientConfig);
  const internals = internalsOf(client);
  internals.getStartupConf = () => ({ user, database, application_name: `rankd ${applicationName ?? ''}`.trim() });
  internals.binary = false; // by default, the driver reads PGBINARY
  if (!mustProve(address)) return client;
  const { connection } = internals;
  connection.password = () => undefined;
  for (const [event, form] of Object.entries(insecureRequests))
    connection.on(event, () => connection.emit('error', asksForPassword(address, form)));
  return client;
}

/**
 * Connects. Throws `store_unavailable` if there is a password but no verified certificate, and the server does not
 * prove with SCRAM that it knows the password. Also throws it if the server begins SCRAM without completing it, or if
 * there is no password and another user could have replaced the socket. The driver verifies the server's SCRAM
 * signature, but does not notice if there is none.
 */
export async function connectProven(client: pg.Client, address: ServerAddress): Promise<void> {
  await client.connect();
  const provesByPath = isSocket(address.host) && address.password === undefined;
  const open = provesByPath ? openDirectory(address) : undefined;
  if (open !== undefined) throw unguarded(address, open);
  const { saslSession } = internalsOf(client);
  if (saslSession === null) return;
  if (saslSession !== undefined) throw unproven(address);
  if (mustProve(address)) throw asksForNoPassword(address);
}

const [others, sticky] = [0o002, 0o1000];

/**
 * Returns a directory through which another user of this machine could have replaced the socket; `undefined` if there
 * is none. Trusts root, this process's user, the owner of the socket's directory, and any group that can write to a
 * directory. libpq asks the kernel which user bound the socket (`requirepeer`), but Node.js has no API for that.
 */
export function openDirectory({ host, port }: { host: string; port: number }): string | undefined {
  const own = ownUid();
  const directory = realpathSync(host);
  let entry = lstatSync(join(directory, `.s.PGSQL.${port}`), { throwIfNoEntry: false });
  for (let path = directory; ; path = dirname(path)) {
    const stats = statSync(path);
    const { uid, mode } = stats;
    const isTrusted = (owner: number) => owner === 0 || owner === own;
    const isEntrySafe = (mode & sticky) !== 0 && entry !== undefined && (isTrusted(entry.uid) || entry.uid === uid);
    if (path !== directory && !isTrusted(uid)) return path;
    if ((mode & others) !== 0 && !isEntrySafe) return path;
    if (path === dirname(path)) return undefined;
    entry = stats;
  }
}

function mustProve({ password, tls }: ServerAddress): boolean {
  return password !== undefined && (tls === false || tls === 'unchecked');
}

const insecureRequests = { authenticationCleartextPassword: 'in cleartext', authenticationMD5Password: 'as MD5' };

function alternative({ host }: ServerAddress): string {
  return isSocket(host)
    ? 'or remove the password from rankd and use peer'
    : 'or turn on TLS on the server and set store.tls: verify';
}

function asksForPassword(address: ServerAddress, form: string): RankdError {
  return distrusted(
    `The PostgreSQL server asks for the password ${form}, which rankd sends only over TLS with a verified certificate.`,
    {
      hint: `make ${hostAndPort(address)} use SCRAM for ${address.user}: password_encryption = scram-sha-256, ALTER ROLE ${sqlName(address.user)} PASSWORD '…', scram-sha-256 in pg_hba.conf; ${alternative(address)}`,
    },
  );
}

function asksForNoPassword(address: ServerAddress): RankdError {
  const message =
    'The PostgreSQL server does not ask rankd for its password, so nothing proves that it is the right server.';
  return distrusted(message, {
    hint: `replace trust or peer with scram-sha-256 in the pg_hba.conf of ${hostAndPort(address)}; ${alternative(address)}`,
  });
}

function unguarded(address: ServerAddress, directory: string): RankdError {
  return distrusted("Another user of this machine could have created the PostgreSQL server's socket.", {
    hint: `other users can replace ${hostAndPort(address)}, because ${directory} is theirs or writable by everyone: set unix_socket_directories to a directory that only PostgreSQL's user can write to; or give ${address.user} a SCRAM password and set RANKD_STORE_PASSWORD, so that the server has to prove its identity`,
  });
}

export function unproven(address: ServerAddress, cause?: unknown): RankdError {
  return distrusted('The PostgreSQL server does not prove that it knows the password, so it may be another program.', {
    hint: `check which program is listening on ${hostAndPort(address)}; the password was not sent`,
    cause,
  });
}

function distrusted(message: string, options: { hint: string; cause?: unknown }): RankdError {
  return new RankdError('store_unavailable', message, { retryAfterMs: 1_000, ...options });
}
