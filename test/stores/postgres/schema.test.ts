import { expect, test } from 'vitest';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

test('no sequence is unlogged: a standby that became the primary could not read it', async () => {
  const { address } = await postgresDatabase();
  const rows = await onServer(
    address,
    `SELECT relname, relpersistence = 'u' AS "isUnlogged" FROM pg_class
     WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'S' ORDER BY relname`,
  );
  expect(rows).toContainEqual({ relname: 'member_queue_seq_seq', isUnlogged: false });
  expect(rows.filter(({ isUnlogged }) => isUnlogged)).toEqual([]);
});

test('what ends with its nodes, or fills up again by itself, is all that no disk waits for', async () => {
  const { address } = await postgresDatabase();
  const rows = await onServer(
    address,
    `SELECT relname FROM pg_class
     WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'r' AND relpersistence = 'u' ORDER BY relname`,
  );
  expect(rows.map(({ relname }) => relname)).toEqual(['idempotency_claims', 'limit_counts', 'member_queue']);
});
