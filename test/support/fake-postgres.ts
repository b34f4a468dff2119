import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { Credentials } from './certificates.ts';

/** The password exchange that the server requests. */
type AuthMethod = 'nothing' | 'cleartext' | 'MD5' | 'SCRAM';

export interface FakeServer {
  /** In the format of `server_version_num`, e.g. 180004. */
  version?: number;
  /** The error code (SQLSTATE) of the response to every prepared statement. */
  errorCode?: string;
  errorMessage?: string;
  authMethods?: readonly AuthMethod[];
  /**
   * Selects how the server ends a SCRAM exchange. `never`: it reports success after the client's first message. `no
   * signature`: it reports success after the client's proof. `password`: it sends a signature that proves this
   * password, and then reports success.
   */
  scramEnd?: 'never' | 'no signature' | { password: string };
  /** If set, the server listens on a socket in this directory instead of on 127.0.0.1. */
  directory?: string | undefined;
  /** If set, the server accepts TLS with this certificate. */
  tls?: Credentials | undefined;
}

/**
 * A server that speaks enough of PostgreSQL's protocol for rankd to reject it. `received` returns all data received so
 * far.
 */
export interface FakePostgres {
  host: string;
  port: number;
  received(): string;
}

const message = (type: string, ...parts: Buffer[]) => {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
const int16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const int32 = (value: number) => Buffer.from([0, 0, value >> 8, value & 255]);
const text = (value: string) => Buffer.from(`${value}\0`);
const cell = (value: string) => Buffer.concat([int32(value.length), Buffer.from(value)]);
const ready = message('Z', Buffer.from('I'));
const authenticated = Buffer.concat([message('R', int32(0)), ready]);

export async function startFakePostgres(fake: FakeServer = {}): Promise<FakePostgres> {
  const received: Buffer[] = [];
  const facts = connectionFacts(fake.version ?? 180_004);
  const fields = ['SERROR', `C${fake.errorCode ?? ''}`, `M${fake.errorMessage ?? 'refused'}`, ''].map(text);
  const refusal = Buffer.concat([message('E', ...fields), ready]);
  const server = createServer(async (plain) => {
    plain.on('error', () => undefined);
    const socket = fake.tls === undefined ? plain : await acceptTls(plain, fake.tls);
    socket.on('error', () => undefined);
    const chunks = recordChunks(socket, received);
    const next = async () => (await chunks.next()).value ?? Buffer.alloc(0);
    await next();
    for (const ask of fake.authMethods ?? ['nothing'])
      await authenticate(ask, { socket, next, scramEnd: fake.scramEnd ?? 'never' });
    socket.write(authenticated);
    for await (const bytes of chunks) {
      const type = bytes.toString('latin1')[0];
      if (type === 'Q') socket.write(Buffer.concat([facts, ...Array(countQueries(bytes) - 1).fill(facts)]));
      else if (type === 'X') socket.end();
      else socket.write(refusal);
    }
  });
  const { directory } = fake;
  const at = directory === undefined ? { port: 0, host: '127.0.0.1' } : { path: `${directory}/.s.PGSQL.5432` };
  await new Promise<void>((resolve) => server.listen(at, resolve));
  onTestFinished(() => void server.close());
  const port = directory === undefined ? (server.address() as AddressInfo).port : 5432;
  return { host: directory ?? '127.0.0.1', port, received: () => Buffer.concat(received).toString('latin1') };
}

export async function acceptTls(plain: Socket, credentials: Credentials): Promise<TLSSocket> {
  await once(plain, 'data');
  plain.write('S');
  return new TLSSocket(plain, { isServer: true, ...credentials });
}

async function* recordChunks(socket: Socket, received: Buffer[]): AsyncGenerator<Buffer> {
  for await (const bytes of socket) {
    received.push(bytes);
    yield bytes;
  }
}

/** Counts the simple queries in a chunk. */
function countQueries(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) if (bytes[at] === 0x51) count += 1;
  return count;
}

/** Returns the response to the statements that rankd sends on a new connection. */
function connectionFacts(version: number): Buffer {
  const settings = {
    default_transaction_isolation: { value: 'read committed', source: 'default' },
    session_replication_role: { value: 'origin', source: 'default' },
  };
  const cells: Array<[name: string, type: number, value: string]> = [
    ['version', 23, String(version)],
    ['versionName', 25, `${Math.floor(version / 10_000)}.${version % 10_000}`],
    ['encoding', 25, 'UTF8'],
    ['isStandby', 16, 'f'],
    ['time', 20, String(Date.now())],
    ['settings', 114, JSON.stringify(settings)],
    ['cluster', 25, '7000000000000000001'],
    ['timeline', 23, '1'],
  ];
  const described = cells.map(([name, type]) =>
    Buffer.concat([text(name), int32(0), int16(0), int32(type), int16(8), int32(0), int16(0)]),
  );
  const count = int16(cells.length);
  const row = message('D', count, ...cells.map(([, , value]) => cell(value)));
  const set = message('C', text('SET'));
  return Buffer.concat([set, message('T', count, ...described), row, message('C', text('SELECT 1')), ready]);
}

interface Exchange {
  socket: Socket;
  next(): Promise<Buffer>;
  scramEnd: FakeServer['scramEnd'];
}

async function authenticate(ask: AuthMethod, { socket, next, scramEnd }: Exchange): Promise<void> {
  if (ask === 'nothing') return;
  if (ask === 'cleartext' || ask === 'MD5') {
    socket.write(ask === 'cleartext' ? message('R', int32(3)) : message('R', int32(5), Buffer.from('salt')));
    await next();
    return;
  }
  socket.write(message('R', int32(10), text('SCRAM-SHA-256'), text('')));
  const clientFirst = (await next()).toString('latin1').match(/n=\*,r=.*/)?.[0] ?? '';
  if (scramEnd === 'never') return;
  const salt = Buffer.from('salt and pepper');
  const serverFirst = `${clientFirst.replace('n=*,', '')}more,s=${salt.toString('base64')},i=4096`;
  socket.write(message('R', int32(11), Buffer.from(serverFirst)));
  const clientFinal = (await next()).toString('latin1').match(/c=.*,r=[^,]*/)?.[0] ?? '';
  if (scramEnd === 'no signature' || scramEnd === undefined) return;
  const salted = pbkdf2Sync(scramEnd.password, salt, 4096, 32, 'sha256');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest();
  const signed = createHmac('sha256', serverKey)
    .update(`${clientFirst},${serverFirst},${clientFinal}`)
    .digest('base64');
  socket.write(message('R', int32(12), Buffer.from(`v=${signed}`)));
}

/** Returns the response to PostgreSQL's MD5 challenge, without the prefix `md5`. */
export function md5Of(user: string, password: string, salt: string): string {
  const hash = (value: string) => createHash('md5').update(value).digest('hex');
  return hash(hash(password + user) + salt);
}
