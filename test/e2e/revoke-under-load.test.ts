import { expect, test } from 'vitest';
import { postgresDatabase } from '../support/postgres-database.ts';
import { runRevocations } from '../tools/revocation-run.ts';

test('while 64 connections hammer the daemon, no request that begins after `key revoke` returned succeeds', async () => {
  expect(await runRevocations({ daemons: 1, env: {}, wanted: 500 })).toMatchObject({ accepted: 0, others: 0 });
});

test('nor at any of three daemons on one PostgreSQL, with the command on a fourth machine', async () => {
  const { url } = await postgresDatabase();
  const report = await runRevocations({ daemons: 3, env: { RANKD_STORE_URL: url }, wanted: 500 });
  expect(report).toMatchObject({ accepted: 0, others: 0 });
});
