import { expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../src/stores/postgres/engine/database.ts';
import { requireAlone } from '../../../src/stores/postgres/nodes.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { newestSchema } from '../../../src/stores/postgres/schema/migrate.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

test('rankd does not migrate an older schema until no other node has sent a heartbeat for 6 s', async () => {
  const { address } = await postgresDatabase();
  const db = new Database(address);
  const [time, otherTime] = [new ManualClock(), new ManualClock()];
  const other = await openPostgresStore({ address, clock: new ManualClock(), leaseClock: otherTime });
  onTestFinished(async () => {
    await Promise.all([db.close(), other.close()]);
  });
  const alone = (rest: { newest?: number; predecessor?: string } = {}) =>
    requireAlone(db, { own: time, newest: newestSchema + 1, ...rest });
  await alone(); // no other node has used the database yet
  await other.enqueue(7);
  await alone({ newest: newestSchema });
  const [node] = await db.all<{ id: string; beat: number }>('SELECT id, beat FROM rankd.nodes');
  await alone({ predecessor: node?.id ?? '' });

  const refused = alone().catch((error: unknown) => error);
  const beats = async () => (await db.get<{ beat: number }>('SELECT beat FROM rankd.nodes'))?.beat;
  const nextBeat = async () => {
    await otherTime.advance(1_000);
    return beats();
  };
  await expect.poll(nextBeat).toBeGreaterThan(node?.beat ?? 0);
  expect(await time.passUntil(refused)).toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('other rankd processes are using it'),
    hint: expect.stringContaining('rankd db migrate'),
  });
  const hasNoNewBeat = async () => (await beats()) === (await onServer(address, 'SELECT pg_sleep(0.1)').then(beats));
  await expect.poll(hasNoNewBeat).toBe(true); // the other node's last heartbeat has been stored
  const before = time.monotonic();
  await time.passUntil(alone()); // the other node's heartbeats have stopped
  expect(time.monotonic() - before).toBeGreaterThan(6_000);
});
