import { expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../src/stores/postgres/engine/database.ts';
import { isSuperseded } from '../../../src/stores/postgres/engine/inspect-server.ts';
import { postgresDatabase } from '../../support/postgres-database.ts';

test('a session that no longer accepts writes is dropped, and a new one is opened', async () => {
  const { address } = await postgresDatabase();
  const db = new Database(address);
  onTestFinished(() => db.close());
  await db.work('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'); // like a primary that has become a standby
  const write = () =>
    db.work<{ version: number }>('UPDATE rankd.access_version SET version = version + 1 RETURNING version');
  await expect(write()).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('read-only'),
  });
  await expect
    .poll(() =>
      write().then(
        (rows) => rows.length,
        () => 0,
      ),
    )
    .toBe(1);
});

test('a server on an older timeline of its cluster is superseded; each cluster has separate timelines', () => {
  expect(isSuperseded({ cluster: 'one', timeline: 1 })).toBe(false);
  expect(isSuperseded({ cluster: 'one', timeline: 2 })).toBe(false);
  expect(isSuperseded({ cluster: 'one', timeline: 1 })).toBe(true);
  expect(isSuperseded({ cluster: 'other', timeline: 1 })).toBe(false);
  expect(isSuperseded({ cluster: 'one', timeline: 2 })).toBe(false);
});
