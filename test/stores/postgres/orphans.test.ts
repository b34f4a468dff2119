import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { codeOf } from '../../support/answers.ts';
import { openTestApp } from '../../support/open-test-app.ts';
import { clientOf, onServer, postgresDatabase } from '../../support/postgres-database.ts';
import { startStoreProxy } from '../../tools/store-proxy.ts';

/** Matches only this database, because other tests use the same server at the same time. */
const waitingHere = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

test('a request that failed with its connection can be retried with its Idempotency-Key once the server responds', async () => {
  const { address } = await postgresDatabase();
  await using proxy = await startStoreProxy(address.port);
  const through = { ...address, host: '127.0.0.1', port: proxy.port };
  const store = await openPostgresStore({ address: through, clock: systemClock });
  onTestFinished(() => store.close());
  await using app = await openTestApp({ store });
  const key = await app.createKey();
  const rank = () => app.rank(key, {}, { headers: { 'idempotency-key': 'one' } });
  const admin = clientOf(address);
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query('BEGIN; SELECT FROM rankd.audit_head FOR UPDATE'); // prevents the change from beginning
  const cutOff = rank();
  await expect.poll(async () => (await onServer(address, `SELECT pid ${waitingHere}`)).length).toBeGreaterThan(0);
  proxy.mode = 'hold';
  proxy.cut();
  expect([(await cutOff).status, codeOf(await cutOff)]).toEqual([503, 'store_unavailable']);
  await admin.query('ROLLBACK');
  // The daemon could not release the claim either.
  expect((await admin.query('SELECT FROM rankd.idempotency_claims')).rowCount).toBe(1);

  proxy.mode = 'pass';
  let repeated: Awaited<ReturnType<typeof rank>> | undefined;
  const repeat = async () => {
    repeated = await rank();
    return codeOf(repeated);
  };
  await expect.poll(repeat).not.toBe('store_unavailable');
  expect(repeated?.status).toBe(200);
});

test('claims and queue positions that a live node could not release, or never received, are free after its next heartbeats', async () => {
  const { address } = await postgresDatabase();
  const open = async () => {
    const store = await openPostgresStore({ address, clock: systemClock });
    onTestFinished(() => store.close());
    return store;
  };
  const [one, other] = [await open(), await open()];
  const slot = { keyId: 'key_1', idempotencyKey: 'one \x1a', group: 'g' };
  const claim = { ...slot, fingerprint: 'f', since: 0 };
  expect(await one.claimIdempotencyKey(claim)).toEqual({ is: 'claimed' });
  const position = await one.enqueue(7);
  const held = await one.enqueue(8);
  const admin = clientOf(address);
  await admin.connect();
  onTestFinished(() => admin.end());
  await admin.query('BEGIN; LOCK rankd.idempotency_claims, rankd.member_queue IN EXCLUSIVE MODE');
  const lost = Promise.allSettled([one.releaseIdempotencyKey(slot), one.leave(position), one.enqueue(9)]);
  const cut = async () => (await onServer(address, `SELECT pg_terminate_backend(pid) ${waitingHere}`)).length;
  await expect.poll(cut).toBeGreaterThan(0);
  expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  // Simulates an enqueue whose response was lost.
  await admin.query('INSERT INTO rankd.member_queue (rankee_id, node) SELECT 10, node FROM rankd.member_queue LIMIT 1');
  await admin.query('COMMIT');

  const isNext = async (rankeeId: number) => (await other.queueState({ rankeeId })).isNext;
  await expect.poll(() => other.claimIdempotencyKey(claim), { timeout: 4_000 }).toEqual({ is: 'claimed' });
  await expect.poll(() => Promise.all([7, 9, 10].map(isNext)), { timeout: 4_000 }).toEqual([true, true, true]);
  expect(await isNext(8)).toBe(false);
  await one.leave(held);
  expect(await isNext(8)).toBe(true);
  expect(await one.claimIdempotencyKey(claim)).toEqual({ is: 'running', fingerprint: 'f' });
});
