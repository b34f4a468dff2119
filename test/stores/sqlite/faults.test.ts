import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../../src/ports/index.ts';
import { Connection } from '../../../src/stores/sqlite/engine/connection.ts';
import { SqliteDatabase } from '../../../src/stores/sqlite/engine/database.ts';
import { toStoreError } from '../../../src/stores/sqlite/engine/sqlite-error.ts';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { begin, newChange, newKey, operate, operator } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

const clock = new ManualClock();

async function openForFaults(options: { lockTimeoutMs?: number } = {}): Promise<{ store: Store; db: SqliteDatabase }> {
  const dataDir = tempDir();
  await (await openSqliteStore({ dataDir, clock })).close();
  const db = new SqliteDatabase(new Connection(join(dataDir, 'rankd.db'), options));
  onTestFinished(() => db.close());
  return { store: createSqliteStore(db, clock), db };
}

test('a write fails on a full disk, stores nothing, and succeeds once there is space', async () => {
  const { store, db } = await openForFaults();
  await operate({ store: store, clock }).createKey(newKey('main'), operator);
  const [{ pages } = { pages: 0 }] = await db.all<{ pages: number }>(
    'SELECT page_count AS pages FROM pragma_page_count',
  );
  await db.work(`PRAGMA max_page_count = ${pages}`);
  const large = newChange({ keyId: 'key_other', message: 'x'.repeat(100_000) });
  await expect(begin(store, large, { after: undefined })).rejects.toMatchObject({
    name: 'RankdError',
    code: 'store_unavailable',
    message: expect.stringContaining('full'),
    hint: expect.stringContaining('free up space'),
  });
  const places = Array.from({ length: 5_000 }, (_, index) => index + 1);
  const adding = operate({ store: store, clock }).addEntries({ keyId: 'key_main', placeIds: places }, operator);
  await expect(adding).rejects.toMatchObject({ code: 'store_unavailable' });
  await store.ping();
  expect(await store.listEntries({})).toEqual([]);
  expect(await store.listAudit({ limit: 9 })).toHaveLength(1);

  await db.work('PRAGMA max_page_count = 100000');
  expect(await begin(store, large, { after: undefined })).toBe(true);
  expect(await store.findChange(large.id)).toEqual(large);
});

test('a database that stays locked by another process is reported as store_unavailable, with a retry time', async () => {
  const { store, db } = await openForFaults({ lockTimeoutMs: 10 });
  const holder = new Database(db.file);
  onTestFinished(() => void holder.close());
  holder.exec('BEGIN IMMEDIATE');
  const locked = { code: 'store_unavailable', message: expect.stringContaining('locked'), retryAfterMs: 1_000 };
  await expect(operate({ store: store, clock }).createKey(newKey('main'), operator)).rejects.toMatchObject(locked);
  await expect(
    operate({ store: store, clock }).appendAudit({ by: 'daemon', action: 'a', subject: 's', detail: {} }),
  ).rejects.toMatchObject(locked);
  expect(await store.listKeys()).toEqual([]);
  holder.exec('ROLLBACK');
  expect(await operate({ store: store, clock }).createKey(newKey('main'), operator)).toMatchObject({ name: 'main' });
});

test('a damaged database is reported as store_unavailable, with a hint to restore a backup', async () => {
  const dataDir = tempDir();
  const store = await openSqliteStore({ dataDir, clock });
  await operate({ store: store, clock }).createKey(newKey('main'), operator);
  await store.close();
  const file = join(dataDir, 'rankd.db');
  writeFileSync(file, readFileSync(file).fill(0xff, 4_096));
  await expect(openSqliteStore({ dataDir, clock })).rejects.toMatchObject({
    name: 'RankdError',
    code: 'store_unavailable',
    message: expect.stringContaining('damaged'),
    hint: expect.stringContaining('restore a backup'),
  });
});

test('a database without its workspace is reported as store_unavailable, with a hint to restore a backup', async () => {
  const { store, db } = await openForFaults();
  await db.work('DELETE FROM workspace');
  const lost = { code: 'store_unavailable', hint: expect.stringContaining('restore a backup') };
  await expect(store.getWorkspace()).rejects.toMatchObject(lost);
  await expect(operate({ store: store, clock }).updateWorkspace({ active: true }, operator)).rejects.toMatchObject(
    lost,
  );
});

test('a write to a read-only database fails with store_unavailable', async () => {
  const { store, db } = await openForFaults();
  await db.work('PRAGMA query_only = ON');
  await expect(operate({ store: store, clock }).createKey(newKey('main'), operator)).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('read-only'),
  });
});

test.each(['SQLITE_IOERR_WRITE', 'SQLITE_FULL', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_CORRUPT_INDEX', 'SQLITE_NOMEM'])(
  '%s is reported as store_unavailable, with its cause but no path in the message',
  (code) => {
    const cause = new Database.SqliteError('inner words about /var/lib/rankd/rankd.db', code);
    const error = toStoreError(cause, '/var/lib/rankd/rankd.db');
    expect(error).toMatchObject({ name: 'RankdError', code: 'store_unavailable', cause });
    expect(error.message).not.toContain('/var');
    expect(error.hint).toBeTruthy();
  },
);

test('audit events can be neither edited nor deleted, even directly in the database', async () => {
  const { store, db } = await openForFaults();
  await operate({ store: store, clock }).createKey(newKey('main'), operator);
  const direct = new Database(db.file);
  onTestFinished(() => void direct.close());
  expect(() => direct.exec("UPDATE audit_events SET done_by = 'nobody'")).toThrow('never edited');
  expect(() => direct.exec('DELETE FROM audit_events')).toThrow('never deleted');
  expect(() => direct.exec('REPLACE INTO audit_events SELECT * FROM audit_events')).toThrow('only added at the end');
  expect(() => direct.exec('DELETE FROM audit_anchor')).toThrow('keeps its anchor');
  expect(() => direct.exec('REPLACE INTO audit_anchor SELECT 1, id, hash FROM audit_events')).toThrow('one anchor');
  expect(() => direct.exec('UPDATE audit_anchor SET last_id = 1')).toThrow('one of its own events');
  expect(await store.listAudit({ limit: 9 })).toMatchObject([{ by: operator }]);
});
