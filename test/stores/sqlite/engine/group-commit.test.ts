import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../../src/stores/sqlite/engine/connection.ts';
import { SqliteDatabase } from '../../../../src/stores/sqlite/engine/database.ts';
import { createSqliteStore, openSqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts';
import { begin, newChange, newKey, operate, operator } from '../../../contracts/store/samples.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { tempDir } from '../../../support/temp-dir.ts';
import { commitsIn } from '../support.ts';

const clock = new ManualClock();

async function open() {
  const dataDir = tempDir();
  await (await openSqliteStore({ dataDir, clock })).close();
  const db = new SqliteDatabase(new Connection(join(dataDir, 'rankd.db')));
  onTestFinished(() => db.close());
  return { db, store: createSqliteStore(db, clock) };
}

test('writes that arrive together are committed together', async () => {
  const { db, store } = await open();
  await operate({ store: store, clock }).appendAudit({ by: operator, action: 'first', subject: 's', detail: {} });
  const before = commitsIn(db.file);
  const members = Array.from({ length: 50 }, (_, index) => 2_000 + index);
  await Promise.all(
    members.map((rankeeId) => begin(store, newChange({ id: `chg_${rankeeId}`, rankeeId }), { after: undefined })),
  );
  expect(await store.openChanges()).toHaveLength(50);
  expect(commitsIn(db.file) - before).toBe(1);
});

test('a refused write does not affect the writes committed with it', async () => {
  const { store } = await open();
  const outcomes = await Promise.allSettled([
    operate({ store: store, clock }).createKey(newKey('main'), operator),
    operate({ store: store, clock }).createKey(newKey('main', { id: 'key_twin' }), operator),
    operate({ store: store, clock }).createKey(newKey('other'), operator),
    operate({ store: store, clock }).revokeKey('key_none', operator),
  ]);
  expect(outcomes).toMatchObject([
    { status: 'fulfilled', value: { name: 'main' } },
    { status: 'rejected', reason: { code: 'already_exists' } },
    { status: 'fulfilled', value: { name: 'other' } },
    { status: 'rejected', reason: { code: 'not_found' } },
  ]);
  expect((await store.listKeys()).map(({ name }) => name)).toEqual(['main', 'other']);
  expect((await store.listAudit({ limit: 9 })).map(({ subject }) => subject)).toEqual(['key_other', 'key_main']);
});

test('if one write makes SQLite roll back the transaction, the others are retried and stored', async () => {
  const { db, store } = await open();
  const [{ pages } = { pages: 0 }] = await db.all<{ pages: number }>(
    'SELECT page_count AS pages FROM pragma_page_count',
  );
  await db.work(`PRAGMA max_page_count = ${pages + 2}`);
  const large = newChange({ message: 'x'.repeat(100_000) });
  const event = (subject: string) =>
    operate({ store: store, clock }).appendAudit({ by: operator, action: 'a', subject, detail: {} });
  const outcomes = await Promise.allSettled([event('one'), begin(store, large, { after: undefined }), event('two')]);
  expect(outcomes).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'store_unavailable', message: expect.stringContaining('full') } },
    { status: 'fulfilled' },
  ]);
  expect((await store.listAudit({ limit: 9 })).map(({ subject }) => subject)).toEqual(['two', 'one']);
  expect(await store.openChanges()).toEqual([]);
});

test('a write whose last statement fails is reverted without affecting the others', async () => {
  const { db, store } = await open();
  const event = (subject: string) =>
    operate({ store: store, clock }).appendAudit({ by: operator, action: 'a', subject, detail: {} });
  const broken = db.write(async (transaction) => {
    transaction.run("INSERT INTO schema_steps VALUES (98, 'broken', 0)");
    transaction.run("INSERT INTO schema_steps VALUES (98, 'broken', 0)");
    transaction.run("INSERT INTO schema_steps VALUES (99, 'broken', 0)");
  });
  const outcomes = await Promise.allSettled([event('one'), broken, event('two')]);
  expect(outcomes).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'conflict' } },
    { status: 'fulfilled' },
  ]);
  expect(await db.all('SELECT * FROM schema_steps WHERE version > 97')).toEqual([]);
  expect((await store.listAudit({ limit: 9 })).map(({ subject }) => subject)).toEqual(['two', 'one']);
});
