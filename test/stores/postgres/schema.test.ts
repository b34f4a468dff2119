import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { postgresDatabase } from '../../support/postgres-database.ts';

test('no sequence is unlogged: a standby that became the primary could not read it', async () => {
  const { url } = await postgresDatabase();
  const client = new pg.Client({ connectionString: url });
  onTestFinished(() => client.end());
  await client.connect();
  const { rows } = await client.query(
    `SELECT relname, relpersistence = 'u' AS "isUnlogged" FROM pg_class
     WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'S' ORDER BY relname`,
  );
  expect(rows).toContainEqual({ relname: 'member_queue_seq_seq', isUnlogged: false });
  expect(rows.filter(({ isUnlogged }) => isUnlogged)).toEqual([]);
});
