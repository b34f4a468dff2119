import { expect, test } from 'vitest';
import { postgresDatabase } from '../support/postgres-database.ts';
import { runRevocations } from '../tools/revocation-run.ts';

test('under load from 64 connections, no request that begins after `key revoke` has returned succeeds', async () => {
  expect(await runRevocations({ daemons: 1, env: {}, wanted: 500 })).toMatchObject({ accepted: 0, others: 0 });
});

test('under load, a key revoked on a fourth machine is refused by three daemons on one PostgreSQL', async () => {
  const { url } = await postgresDatabase();
  const report = await runRevocations({ daemons: 3, env: { RANKD_STORE_URL: url }, wanted: 500 });
  expect(report).toMatchObject({ accepted: 0, others: 0 });
});
