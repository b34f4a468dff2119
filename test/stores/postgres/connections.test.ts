import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { codeOf } from '../../support/answers.ts';
import { openTestApp } from '../../support/open-test-app.ts';
import { clientOf, postgresDatabase } from '../../support/postgres-database.ts';
import { startStoreProxy } from '../../tools/store-proxy.ts';

test('requests get 503 while the server has no free connection; heartbeats use a separate one, so the lease stays valid', async () => {
  const { address } = await postgresDatabase();
  const { user, database, password } = address;
  const admin = clientOf(address);
  await admin.connect();
  const limited = `limited_${database}`; // a user whose connections this test limits
  await admin.query(
    `CREATE ROLE ${limited} LOGIN PASSWORD ${admin.escapeLiteral(password?.() ?? '')}; GRANT "${user}" TO ${limited}`,
  );
  const store = await openPostgresStore({ address: { ...address, user: limited }, clock: systemClock });
  onTestFinished(async () => {
    await store.close();
    await admin.query(`DROP ROLE ${limited}`);
    await admin.end();
  });
  await store.nodes?.showNode({
    ...{ name: 'east', status: () => ({}) as never, carryOut: async () => undefined },
    ...{ onNodesChanged: () => undefined },
  });
  await using app = await openTestApp({ store });
  const key = await app.createKey();
  expect((await app.verify(key)).status).toBe(200);

  await admin.query(`ALTER ROLE ${limited} CONNECTION LIMIT 1`);
  await admin.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND query NOT LIKE '%UPDATE rankd.nodes SET beat%'`,
    [limited],
  );
  const beats = async () =>
    (await admin.query('SELECT beat, ended_by FROM rankd.nodes WHERE name IS NOT NULL')).rows[0];
  const before = await beats();
  await expect
    .poll(async () => {
      const { json } = await app.verify(key);
      return (json as { message?: string }).message;
    })
    .toContain('no connection left for rankd');
  const refused = await app.rank(key);
  expect([refused.status, codeOf(refused), refused.headers['retry-after']]).toEqual([503, 'store_unavailable', '1']);
  await expect.poll(async () => Number((await beats()).beat)).toBeGreaterThan(Number(before.beat) + 1);
  expect(await beats()).toMatchObject({ ended_by: null });

  await admin.query(`ALTER ROLE ${limited} CONNECTION LIMIT -1`);
  await expect.poll(async () => (await app.verify(key)).status).toBe(200);
  // Changes use a different connection, which recovers independently.
  await expect.poll(async () => (await app.rank(key)).status).toBe(200);
});

test('a request waits at most 2 s to look up its key on an unresponsive server, and requests work again once it recovers', async () => {
  const { address } = await postgresDatabase();
  await using proxy = await startStoreProxy(address.port);
  const through = { ...address, host: '127.0.0.1', port: proxy.port };
  const store = await openPostgresStore({ address: through, clock: systemClock });
  onTestFinished(() => store.close());
  await using app = await openTestApp({ store });
  const key = await app.createKey();
  expect((await app.verify(key)).status).toBe(200);
  proxy.mode = 'hold';
  const since = performance.now();
  const asked = [app.verify(key), app.rank(key)];
  await new Promise((resolve) => setTimeout(resolve, 100)); // lets the lookups start before the third request
  for (const { status, headers, ...answer } of await Promise.all([...asked, app.verify(key)]))
    expect([status, codeOf({ status, headers, ...answer }), headers['retry-after']]).toEqual([
      503,
      'store_unavailable',
      '1',
    ]);
  expect(performance.now() - since).toBeLessThan(3_800); // a single wait of 2 s, not two, and not a statement's 5 s
  proxy.mode = 'pass';
  await expect.poll(async () => (await app.verify(key)).status).toBe(200);
});
