import { expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../../src/ports/index.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { begin, newChange } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startPostgres } from '../../support/postgres.ts';
import { onServer } from '../../support/postgres-database.ts';
import { startStoreProxy } from '../../tools/store-proxy.ts';

test('a write that the server lost in a crash is not reported as stored, even if another write reuses its transaction id', async () => {
  // With a delay this long, uncommitted data exists only in the server's memory.
  await using server = await startPostgres({ settings: ['wal_writer_delay=10000'] });
  await using proxy = await startStoreProxy(server.port);
  const clock = new ManualClock();
  const leaseClock = new ManualClock(); // prevents heartbeats, which would flush the data that this test wants to lose
  const at = { user: server.user, database: 'postgres', password: undefined, tls: false as const };
  const address = { ...at, host: server.socketDir, port: server.port };
  const near = await openPostgresStore({ address, clock, leaseClock });
  const far = await openPostgresStore({
    address: { ...at, host: '127.0.0.1', port: proxy.port },
    clock,
    leaseClock,
  });
  onTestFinished(async () => void (await Promise.all([near.close(), far.close()])));
  for (const store of [far, near]) await begin(store, newChange());
  const breaking = {
    beginChange: (change, question, judge) =>
      far.beginChange(change, question, (facts) => {
        proxy.mode = 'hold'; // the change holds its transaction and the lock, but can send nothing more
        return judge(facts);
      }),
  } as Store;

  const lost = newChange({ rankeeId: 8 });
  const rejected = expect(begin(breaking, lost)).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect.poll(() => proxy.mode).toBe('hold');
  const held = await onServer(
    address,
    'SELECT backend_xid::text AS id FROM pg_stat_activity WHERE backend_xid IS NOT NULL',
  );
  await server.restart('SIGKILL');
  proxy.cut();
  const next = () => begin(near, newChange({ rankeeId: 9 })).catch(() => false);
  await expect.poll(next).toBe(true);
  proxy.mode = 'pass';
  await rejected;
  expect(await onServer(address, 'SELECT xmin::text AS id FROM rankd.rank_changes WHERE rankee_id = 9')).toEqual(held);
  expect(await near.findChange(lost.id)).toBeUndefined();
});
