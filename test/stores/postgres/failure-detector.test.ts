import { expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../src/stores/postgres/engine/database.ts';
import { FailureDetector } from '../../../src/stores/postgres/failure-detector.ts';
import { endSql } from '../../../src/stores/postgres/node-statements.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

const other = { id: 'node_b', beat: 4 };

test('after the server stalls, a node declares no other node dead until three of its own heartbeats have been answered', async () => {
  const time = new ManualClock();
  const detector = new FailureDetector(time);
  expect(detector.observe([other], 1)).toEqual([]);
  await time.skip(15_000); // no heartbeat succeeds in this time
  expect(detector.observe([other], 1)).toEqual([]);
  expect(detector.observe([other], 1)).toEqual([]);
  expect(detector.observe([other], 1)).toEqual([other]);
});

test('a new connection, or a new heartbeat from a node, restarts the timeout for that node', async () => {
  const time = new ManualClock();
  const detector = new FailureDetector(time);
  /** Observes the node every second, and returns the second in which it is declared dead. */
  const secondDeclaredDead = async (seconds: number, { beat, session }: { beat: number; session: number }) => {
    for (let second = 1; second <= seconds; second += 1) {
      if (detector.observe([{ ...other, beat }], session).length > 0) return second;
      await time.skip(1_000);
    }
    return undefined;
  };
  expect(await secondDeclaredDead(6, { beat: 4, session: 1 })).toBeUndefined();
  expect(await secondDeclaredDead(6, { beat: 4, session: 2 })).toBeUndefined();
  expect(await secondDeclaredDead(6, { beat: 5, session: 2 })).toBeUndefined();
  expect(await secondDeclaredDead(6, { beat: 5, session: 2 })).toBe(1);
});

test('a node whose heartbeat arrives just before it is declared dead stays alive', async () => {
  const { address } = await postgresDatabase();
  const store = await openPostgresStore({ address, clock: new ManualClock(), leaseClock: new ManualClock() });
  const db = new Database(address);
  onTestFinished(async () => void (await Promise.all([store.close(), db.close()])));
  await store.enqueue(7);
  const [node] = await onServer(address, 'UPDATE rankd.nodes SET beat = 5 RETURNING id');
  const end = (beat: number) => db.work(endSql, { id: node?.['id'], beat, mine: 'node_b' });
  const ended = async () => (await onServer(address, 'SELECT ended_by FROM rankd.nodes'))[0]?.['ended_by'];
  await end(4);
  expect([await ended(), (await onServer(address, 'SELECT 1 FROM rankd.member_queue')).length]).toEqual([null, 1]);
  await end(5);
  expect([await ended(), (await onServer(address, 'SELECT 1 FROM rankd.member_queue')).length]).toEqual(['node_b', 0]);
});
