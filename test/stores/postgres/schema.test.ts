import { expect, test } from 'vitest';
import { onDatabase } from '../../../src/stores/postgres/engine/database.ts';
import { migrate, newestSchema } from '../../../src/stores/postgres/schema/migrate.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

test('of eight concurrent migrations, one runs the steps and the others find them done', async () => {
  const { address } = await postgresDatabase('empty');
  await Promise.all(Array.from({ length: 8 }, () => onDatabase(address, (db) => migrate(db, new ManualClock()))));
  const steps = await onServer(address, 'SELECT version FROM rankd.schema_steps ORDER BY version');
  expect(steps.map(({ version }) => Number(version))).toEqual(Array.from({ length: newestSchema }, (_, at) => at + 1));
});

test('no sequence is unlogged, so that a promoted standby can read it', async () => {
  const { address } = await postgresDatabase();
  const rows = await onServer(
    address,
    `SELECT relname, relpersistence = 'u' AS "isUnlogged" FROM pg_class
     WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'S' ORDER BY relname`,
  );
  expect(rows).toContainEqual({ relname: 'member_queue_seq_seq', isUnlogged: false });
  expect(rows.filter(({ isUnlogged }) => isUnlogged)).toEqual([]);
});

test('only data that ends with its nodes, or refills automatically, is in unlogged tables', async () => {
  const { address } = await postgresDatabase();
  const rows = await onServer(
    address,
    `SELECT relname FROM pg_class
     WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'r' AND relpersistence = 'u' ORDER BY relname`,
  );
  expect(rows.map(({ relname }) => relname)).toEqual(['idempotency_claims', 'limit_counts', 'member_queue']);
});
