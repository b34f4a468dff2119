import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { ServerAddress } from '../../../src/base/net.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { type FakeServer, md5Of, startFakePostgres } from '../../support/fake-postgres.ts';

const password = 'geheim';
const own = { host: '127.0.0.1', database: 'rankd', user: 'rankd', password: () => password, tls: false as const };

async function open(address: ServerAddress): Promise<void> {
  const store = await openPostgresStore({ address, clock: systemClock });
  await store.close();
}

test.each<[does: string, server: FakeServer, says: RegExp]>([
  ['asks for the password in cleartext', { asks: ['cleartext'] }, /asks for the password in cleartext/],
  ['asks for the password as MD5', { asks: ['MD5'] }, /asks for the password as MD5/],
  ['asks for SCRAM first, then for cleartext', { asks: ['SCRAM', 'cleartext'] }, /asks for the password in cleartext/],
  ['lets everybody in', {}, /lets rankd in without its password/],
  ['begins SCRAM and reports success', { asks: ['SCRAM'] }, /does not prove that it knows the password/],
  [
    'takes the proof of SCRAM and gives none',
    { asks: ['SCRAM'], proves: 'no signature' },
    /does not prove that it knows the password/,
  ],
  [
    'signs with another password',
    { asks: ['SCRAM'], proves: { password: 'guessed' } },
    /does not prove that it knows the password/,
  ],
  [
    'asks for SCRAM again once it has proved itself, and gives no proof',
    { asks: ['SCRAM', 'SCRAM'], proves: 'no signature' },
    /does not prove that it knows the password/,
  ],
])(
  'without TLS, a server that %s is refused, and is sent neither the password nor a statement',
  async (_, fake, says) => {
    const { port, heard } = await startFakePostgres(fake);
    await expect(open({ ...own, port })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(says),
      hint: expect.stringContaining(`127.0.0.1:${port}`),
    });
    expect(heard()).toContain('application_name');
    for (const secret of [password, md5Of('rankd', password, 'salt')]) expect(heard()).not.toContain(secret);
    expect(heard()).not.toContain('SELECT');
  },
);

test('a server that proves by SCRAM that it knows the password is believed, also if it says nothing else of PostgreSQL', async () => {
  const { port } = await startFakePostgres({ asks: ['SCRAM'], proves: { password }, refuses: '53100' });
  await expect(open({ ...own, port })).rejects.toMatchObject({ message: expect.stringContaining('disk') });
});
