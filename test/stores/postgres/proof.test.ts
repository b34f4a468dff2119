import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { hostAndPort, type ServerAddress } from '../../../src/base/net.ts';
import { openDirectory } from '../../../src/stores/postgres/engine/client.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { Authority, type Credentials, selfSigned } from '../../support/certificates.ts';
import { acceptTls, type FakeServer, md5Of, startFakePostgres } from '../../support/fake-postgres.ts';
import { postgresDatabase } from '../../support/postgres-database.ts';
import { tempDir } from '../../support/temp-dir.ts';

const password = 'geheim';
const ownAddress = {
  host: '127.0.0.1',
  database: 'rankd',
  user: 'rankd',
  password: () => password,
  tls: false as const,
};

async function open(address: ServerAddress): Promise<void> {
  const store = await openPostgresStore({ address, clock: systemClock });
  await store.close();
}

const impostors: Array<[does: string, server: FakeServer, says: RegExp]> = [
  ['asks for the password in cleartext', { authMethods: ['cleartext'] }, /asks for the password in cleartext/],
  ['asks for the password as MD5', { authMethods: ['MD5'] }, /asks for the password as MD5/],
  [
    'asks for SCRAM first, then for cleartext',
    { authMethods: ['SCRAM', 'cleartext'] },
    /asks for the password in cleartext/,
  ],
  ['accepts every login', {}, /does not ask rankd for its password/],
  ['begins SCRAM and reports success', { authMethods: ['SCRAM'] }, /does not prove that it knows the password/],
  [
    'accepts the SCRAM proof and gives none',
    { authMethods: ['SCRAM'], scramEnd: 'no signature' },
    /does not prove that it knows the password/,
  ],
  [
    'signs with a different password',
    { authMethods: ['SCRAM'], scramEnd: { password: 'guessed' } },
    /does not prove that it knows the password/,
  ],
  [
    'asks for SCRAM again once it has proved itself, and gives no proof',
    { authMethods: ['SCRAM', 'SCRAM'], scramEnd: 'no signature' },
    /does not prove that it knows the password/,
  ],
];

const places = [
  ['TCP without TLS', () => ({})],
  ['a socket', () => ({ directory: tempDir() })],
  ['TLS with an unchecked certificate', () => ({ tls: selfSigned({ name: 'db' }) })],
] satisfies Array<[string, () => Pick<FakeServer, 'directory' | 'tls'>]>;

describe.each(places)('over %s', (where, place) => {
  const tls = where.startsWith('TLS') ? 'unchecked' : false;

  test.each(impostors)(
    'a server that %s is rejected, and gets neither the password nor a statement',
    async (...row) => {
      const [, fake, says] = row;
      const { host, port, received } = await startFakePostgres({ ...fake, ...place() });
      await expect(open({ ...ownAddress, host, port, tls })).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(says),
        hint: expect.stringContaining(hostAndPort({ host, port })),
      });
      expect(received()).toContain('application_name');
      for (const secret of [password, md5Of('rankd', password, 'salt')]) expect(received()).not.toContain(secret);
      expect(received()).not.toContain('SELECT');
    },
  );

  test('a server that proves by SCRAM that it knows the password is trusted', async () => {
    const fake = { authMethods: ['SCRAM'], scramEnd: { password }, errorCode: '53100' } as const;
    const { host, port } = await startFakePostgres({ ...fake, ...place() });
    await expect(open({ ...ownAddress, host, port, tls })).rejects.toMatchObject({
      message: expect.stringContaining('disk'),
    });
  });
});

interface Place {
  above?: number;
  mode?: number;
  /** The parts owned by a different user. */
  foreign?: Array<'above' | 'directory' | 'socket'>;
}

const sockets: Array<[where: string, place: Place, isOpen: 'above' | 'directory' | undefined]> = [
  ["in a directory of rankd's own user is trusted", {}, undefined],
  [
    'of another user is trusted in a directory of that user below one that only root can write to',
    { foreign: ['directory', 'socket'] },
    undefined,
  ],
  [
    'of another user is trusted in a sticky directory of that user below one that only root can write to',
    { mode: 0o3777, foreign: ['directory', 'socket'] },
    undefined,
  ],
  ["of rankd's own user is trusted in a directory like /tmp", { mode: 0o1777 }, undefined],
  ['of another user is not trusted in a directory like /tmp', { mode: 0o1777, foreign: ['socket'] }, 'directory'],
  ['in a directory that everyone can write to is not trusted', { mode: 0o777 }, 'directory'],
  [
    'in a directory of another user below one like /tmp is not trusted',
    { above: 0o1777, foreign: ['directory', 'socket'] },
    'above',
  ],
  ['in a directory below one that everyone can write to is not trusted', { above: 0o777 }, 'above'],
  ['in a directory below one of another user is not trusted', { foreign: ['above'] }, 'above'],
];

describe('a socket', () => {
  const isRoot = process.getuid?.() === 0;
  for (const [where, { above = 0o755, mode = 0o755, foreign = [] }, isOpen] of sockets)
    test.runIf(isRoot || foreign.length === 0)(where, () => {
      const paths = { above: realpathSync(tempDir()), directory: '', socket: '' };
      paths.directory = join(paths.above, 'pg');
      paths.socket = join(paths.directory, '.s.PGSQL.5432');
      mkdirSync(paths.directory);
      writeFileSync(paths.socket, '');
      chmodSync(paths.above, above);
      chmodSync(paths.directory, mode);
      for (const name of foreign) chownSync(paths[name], 65_534, 65_534);
      const found = openDirectory({ host: paths.directory, port: 5432 });
      expect(found).toBe(isOpen && paths[isOpen]);
    });
});

test.runIf(process.getuid?.() === 0)('a socket is checked even for a user id without an account', () => {
  const path = tempDir();
  chmodSync(path, 0o755);
  writeFileSync(join(path, '.s.PGSQL.5432'), '');
  const client = new URL('../../../src/stores/postgres/engine/client.ts', import.meta.url).href;
  const script = `import(${JSON.stringify(client)}).then(({ openDirectory }) =>
    console.log(openDirectory({ host: ${JSON.stringify(path)}, port: 5432 })))`;
  const asUser = ['--reuid=54321', '--regid=54321', '--clear-groups', process.execPath];
  expect(spawnSync('setpriv', [...asUser, '-e', script], { encoding: 'utf8' })).toMatchObject({
    stdout: 'undefined\n',
    stderr: '',
  });
});

test('without a password, a socket in a world-writable directory is rejected before any statement; with SCRAM, it is accepted', async () => {
  const directory = tempDir();
  chmodSync(directory, 0o777);
  const { host, port, received } = await startFakePostgres({ directory, errorCode: '53100' });
  await expect(open({ ...ownAddress, host, port, password: undefined })).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('Another user of this machine could have created'),
    hint: expect.stringContaining(directory),
  });
  expect(received()).not.toContain('SELECT');
  chmodSync(directory, 0o755);
  await expect(open({ ...ownAddress, host, port, password: undefined })).rejects.toMatchObject({
    message: expect.stringContaining('disk'),
  });
  const other = tempDir();
  chmodSync(other, 0o777);
  const proven = await startFakePostgres({
    directory: other,
    authMethods: ['SCRAM'],
    scramEnd: { password },
    errorCode: '53100',
  });
  await expect(open({ ...ownAddress, host: other, port: proven.port })).rejects.toMatchObject({
    message: expect.stringContaining('disk'),
  });
});

const authority = new Authority();
const name = 'localhost';

test.each<[which: string, server: Credentials | undefined, says: RegExp]>([
  ['whose certificate another authority issued', new Authority().issue({ name }), /certificate is not trusted/],
  ['whose certificate is self-signed', selfSigned({ name }), /certificate is not trusted/],
  ['whose certificate is for another name', authority.issue({ name: 'db.example.com' }), /for a different name/],
  ['whose certificate has expired', authority.issue({ name, endsInDays: -1 }), /certificate has expired/],
  ['whose certificate is not valid yet', authority.issue({ name, beginsInDays: 1 }), /not valid yet/],
  ['without TLS', undefined, /offers no TLS/],
])('with store.tls: verify, a server %s is rejected and gets no data', async (_, credentials, says) => {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(credentials === undefined ? 'N' : 'S');
      const client = credentials === undefined ? socket : new TLSSocket(socket, { isServer: true, ...credentials });
      client.on('error', () => undefined).on('data', (bytes) => received.push(bytes));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await expect(open({ ...ownAddress, host: name, port, tls: { ca: authority.pem } })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(says),
  });
  expect(Buffer.concat(received).toString('latin1')).not.toMatch(/application_name|geheim/);
});

test('with store.tls: require, a server with an untrusted certificate is accepted after SCRAM, but a relay is not', async () => {
  const { address, url } = await postgresDatabase();
  const port = Number(new URL(url).port);
  const guarded = {
    ...address,
    user: 'guarded',
    password: () => 'geheim',
    host: '127.0.0.1',
    tls: 'unchecked' as const,
  };
  await open({ ...guarded, port });

  const relay = createServer(async (plain) => {
    const upstream = connect(port, '127.0.0.1');
    upstream.write(Buffer.of(0, 0, 0, 8, 4, 210, 22, 47)); // an SSLRequest message
    const [client] = await Promise.all([acceptTls(plain, selfSigned({ name })), once(upstream, 'data')]);
    const server = connectTls({ socket: upstream, rejectUnauthorized: false });
    for (const socket of [plain, upstream, client, server]) socket.on('error', () => undefined);
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void relay.close());
  await expect(open({ ...guarded, port: (relay.address() as AddressInfo).port })).rejects.toMatchObject({
    message: expect.stringContaining('channel binding'),
  });
});
