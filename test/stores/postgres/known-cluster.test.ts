import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { codeOf, messageOf } from '../../support/answers.ts';
import { DaemonHere } from '../../support/daemon-here.ts';
import { startPostgres } from '../../support/postgres.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';
import { CliHome } from '../../support/run-cli.ts';
import { startStoreProxy } from '../../tools/store-proxy.ts';

test('the daemon and commands reject a different cluster on the same port until the operator accepts it', async () => {
  const [{ address }] = [await postgresDatabase()];
  await using other = await startPostgres();
  await using proxy = await startStoreProxy(address.port);
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  const RANKD_STORE_URL = `postgres://${address.user}@127.0.0.1:${proxy.port}/${address.database}`;
  const env = { RANKD_STORE_URL };
  const run = (...args: string[]) => home.here(args, { env });
  const otherServer = {
    user: other.user,
    password: undefined,
    tls: false as const,
    host: other.socketDir,
    port: other.port,
  };
  await onServer({ ...otherServer, database: 'postgres' }, `CREATE DATABASE "${address.database}"`);
  if (address.user !== other.user)
    await onServer({ ...otherServer, database: 'postgres' }, `CREATE ROLE "${address.user}" SUPERUSER LOGIN`);
  const acceptances = async () =>
    (await run('audit', 'list', '--action', 'store.accept', '--json')).json<{ events: object[] }>().events;
  const clusterOf = async (where: typeof address) =>
    String((await onServer(where, 'SELECT system_identifier::text AS id FROM pg_control_system()'))[0]?.['id']);
  const [before, after] = [await clusterOf(address), await clusterOf({ ...otherServer, database: address.database })];

  const key = (await run('key', 'create', 'game')).stdout.trim();
  await run('whitelist', 'add', '1', '--key', 'game');
  await using daemon = await DaemonHere.start(home, { env });
  expect(await daemon.verify(key)).toMatchObject({ status: 200 });
  const note = join(home.dataDir, 'rankd.clusters');
  expect([Object.values(JSON.parse(readFileSync(note, 'utf8'))), statSync(note).mode & 0o777]).toEqual([
    [before],
    0o600,
  ]);

  proxy.serverPort = other.port;
  proxy.cut();
  await expect
    .poll(async () => messageOf(await daemon.verify(key)))
    .toContain(`cluster ${after}, not cluster ${before}`);
  for (const answer of [await daemon.verify(key), await daemon.rank(key)])
    expect([answer.status, codeOf(answer)]).toEqual([503, 'store_unavailable']);
  const { status } = (await run('status', '--json')).json<{ status: { storeProblem: string } }>();
  expect(status.storeProblem).toContain(`cluster ${after}`);
  for (const args of [
    ['key', 'list'],
    ['db', 'check'],
    ['db', 'migrate', '--dry-run'],
    ['backup', 'x.db'],
  ]) {
    const refused = await run(...args);
    expect({ args, ...refused }).toMatchObject({ code: 69, stderr: expect.stringContaining('rankd store accept') });
  }
  expect(await run('doctor', '--offline')).toMatchObject({
    code: 5,
    stdout: expect.stringContaining('rankd store accept'),
  });
  expect(
    await onServer({ ...otherServer, database: address.database }, `SELECT to_regnamespace('rankd') AS made`),
  ).toEqual([{ made: null }]);

  const asked = await run('store', 'accept');
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining(`${after}, which now answers`) });
  expect(asked.stderr).toContain(`instead of ${before}?`);
  const accepted = await run('store', 'accept', '-y', '--json');
  expect(accepted.json()).toMatchObject({ server: { known: before, found: after, accepted: true } });
  expect((await run('store', 'accept', '--json')).json()).toMatchObject({ server: { known: after, accepted: false } });
  expect(await acceptances()).toEqual([]); // not audited, because the database was still empty
  // Retries, because the daemon may still be creating the tables.
  await expect.poll(() => run('key', 'create', 'next')).toMatchObject({ code: 0 });
  // The daemon now reads from the other cluster, which does not contain this key.
  await expect.poll(async () => codeOf(await daemon.verify(key))).toBe('invalid_key');

  proxy.serverPort = address.port;
  proxy.cut();
  expect(await run('store', 'accept', '-y')).toMatchObject({ code: 0 });
  const event = { action: 'store.accept', by: expect.any(String), detail: { known: after, found: before } };
  expect(await acceptances()).toMatchObject([event]);
  expect((await run('audit', 'verify')).code).toBe(0);
});
