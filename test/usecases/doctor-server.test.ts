import { expect, test } from 'vitest';
import type { NodeStatus, SeenNode } from '../../src/core/nodes.ts';
import type { ServerFacts } from '../../src/ports/index.ts';
import { nodesFindings, serverFindings } from '../../src/usecases/doctor/server.ts';

const sound: ServerFacts = {
  ...{ version: '18.4', user: 'rankd', database: 'rankd', isEncrypted: true, isOnThisMachine: false, isPooled: false },
  ...{ isSynced: true, writesFullPages: true, isCommitSynced: true, standbyCount: 0, synchronousCount: 0 },
  ...{ overridden: [], idleSessionTimeoutMs: 0, isProven: true },
  ...{ connections: { most: 97, used: 12 }, lacks: undefined, aheadMs: 900 },
};

test('a sound server yields one finding, and a store without a server yields none', () => {
  expect(serverFindings(sound)).toEqual([{ check: 'server', grade: 'ok', text: 'PostgreSQL 18.4, over TLS' }]);
  const here = { isEncrypted: false, isOnThisMachine: true };
  expect(serverFindings({ ...sound, ...here })[0]?.text).toBe('PostgreSQL 18.4, on this machine, without TLS');
  expect(serverFindings(undefined)).toEqual([]);
});

test.each<[Partial<ServerFacts>, 'ok' | 'warn' | 'FAIL', string]>([
  [{ isSynced: false }, 'FAIL', 'fsync is off'],
  [{ writesFullPages: false }, 'FAIL', 'full_page_writes is off'],
  [{ isProven: false }, 'warn', "nothing proves the server's identity"],
  [{ isCommitSynced: false }, 'ok', 'rankd turns it on'],
  [{ standbyCount: 1, synchronousCount: 1 }, 'ok', 'loses nothing'],
  [{ standbyCount: 1 }, 'warn', 'asynchronous'],
  [{ isEncrypted: false }, 'warn', 'not encrypted'],
  [{ isPooled: true }, 'warn', 'connections go through a pooler'],
  [{ connections: { most: 97, used: 93 } }, 'warn', '4 of its 97 connections are free; a daemon needs 5'],
  [{ lacks: 'schema' }, 'FAIL', 'does not own the rankd schema'],
  [{ lacks: 'database' }, 'FAIL', 'cannot create a schema in the database'],
  [{ aheadMs: 3_400 }, 'warn', 'clock is 3 s behind'],
  [{ aheadMs: 2_000 }, 'warn', 'clock is 2 s behind'],
  [{ aheadMs: -2_600 }, 'warn', 'clock is 3 s ahead of'],
])('the doctor grades %o as %s: %s', (facts, grade, text) => {
  const found = serverFindings({ ...sound, ...facts });
  expect(found).toContainEqual(expect.objectContaining({ grade, text: expect.stringContaining(text) }));
  for (const { grade: of, fix } of found) expect([of, fix !== undefined]).toEqual([of, of !== 'ok']);
});

test('daemons that differ, or whose clocks are at least 2 s off the server’s, are reported; ended daemons are not', () => {
  const node = (name: string, rest: Partial<NodeStatus>, state: SeenNode['state'] = 'serving') =>
    ({
      id: name,
      name,
      state,
      status: { version: '1', group: 'g', settings: {}, serverAheadMs: 0, ...rest },
    }) as SeenNode;
  const alike = [node('east', { serverAheadMs: 1_999 }), node('west', {})];
  expect(nodesFindings(alike)).toEqual([]);
  const found = nodesFindings([
    ...alike,
    node('north', { version: '2', serverAheadMs: -2_000 }),
    node('south', { version: '3', serverAheadMs: 9_000 }, 'ended'),
  ]);
  expect(found).toMatchObject([
    {
      check: 'daemons',
      grade: 'warn',
      text: 'the daemons differ in version',
      fix: expect.stringMatching(/^rankd status .*; install the same version of rankd on each machine$/),
    },
    { check: 'daemons', grade: 'warn', text: "the clock of north is 2 s ahead of the server's" },
  ]);
});

test('a printed command quotes the names of PostgreSQL users and databases', () => {
  const found = serverFindings({ ...sound, user: 'my-user', lacks: 'database' });
  expect(found.map(({ fix }) => fix)).toContain('GRANT CREATE ON DATABASE "rankd" TO "my-user"');
});
