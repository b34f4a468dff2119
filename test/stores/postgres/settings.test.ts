import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { ServerAddress } from '../../../src/base/net.ts';
import { Database } from '../../../src/stores/postgres/engine/database.ts';
import { postgresOperations } from '../../../src/stores/postgres/operations.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import type { Reader } from '../../../src/stores/sql/database.ts';
import { serverFindings } from '../../../src/usecases/doctor/server.ts';
import { codeOf } from '../../support/answers.ts';
import { startFakePostgres } from '../../support/fake-postgres.ts';
import { openTestApp } from '../../support/open-test-app.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

/** Creates a database with an `evil` schema, and a user with the given settings. */
async function databaseWith(settings: string): Promise<ServerAddress> {
  const { address } = await postgresDatabase();
  const user = `user_of_${address.database}`;
  const alter = settings.split('; ').map((setting) => `ALTER ROLE ${user} SET ${setting}`);
  await onServer(address, [`CREATE ROLE ${user} LOGIN SUPERUSER`, ...alter].join('; '));
  onTestFinished(async () => void (await onServer(address, `DROP SCHEMA IF EXISTS evil CASCADE; DROP ROLE ${user}`)));
  await onServer(address, evil);
  return { ...address, user };
}

async function daemonAt(address: ServerAddress) {
  const store = await openPostgresStore({ address, clock: systemClock });
  onTestFinished(() => store.close());
  return openTestApp({ store });
}

/** Functions that shadow PostgreSQL's own in a session whose search path starts with this schema. */
const evil = `
  CREATE SCHEMA evil;
  CREATE FUNCTION evil.encode(bytea, text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
  CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$`;

test.each([
  `default_transaction_isolation = 'serializable'; statement_timeout = 25; lock_timeout = 1; synchronous_commit = off`,
  `default_transaction_isolation = 'repeatable read'; default_transaction_read_only = on; search_path = evil, pg_catalog; idle_in_transaction_session_timeout = 1; standard_conforming_strings = off`,
])('60 concurrent changes to five members by two daemons all return 200, even if the user has %s', async (settings) => {
  const address = await databaseWith(settings);
  await using one = await daemonAt(address);
  await using other = await daemonAt(address);
  const key = await one.createKey();
  const sent = Array.from({ length: 60 }, (_, index) =>
    (index % 2 === 0 ? one : other).rank(key, { rankeeId: 1001 + (index % 5), newRankId: [10, 20, 50][index % 3] }),
  );
  const answers = (await Promise.all(sent)).map((answer) => [answer.status, codeOf(answer)]);
  expect(answers).toEqual(Array(60).fill([200, undefined]));
  const { rows } = await one.store.auditChain({ afterId: 0, limit: 1_000 });
  expect(rows.filter(({ hash }) => String(hash).includes('evil'))).toEqual([]);
});

test('transactions that conflict with others or are canceled are retried, and conflicts are never reported as slow', async () => {
  const { address } = await postgresDatabase();
  const failing = (table: string, code: string) => `
    CREATE SEQUENCE rankd.tries_${table}; CREATE FUNCTION rankd.collide_${table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('rankd.tries_${table}') < 4 THEN RAISE EXCEPTION 'collided' USING ERRCODE = '${code}'; END IF; RETURN NEW; END $$;
    CREATE TRIGGER collide BEFORE INSERT ON rankd.${table} FOR EACH ROW EXECUTE FUNCTION rankd.collide_${table}()`;
  await onServer(address, failing('rank_changes', '40001'));
  await onServer(address, failing('member_queue', '40P01'));
  await onServer(address, failing('audit_events', '57014'));
  await using app = await daemonAt(address);
  expect(await app.rank(await app.createKey())).toMatchObject({ status: 200 });
  expect(await app.store.enqueue(7)).toMatch(/^\d+$/);

  await onServer(address, 'ALTER SEQUENCE rankd.tries_member_queue RESTART MINVALUE -1000000 START -1000000');
  await expect(app.store.enqueue(8)).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('kept conflicting with others'),
  });
  await onServer(address, 'DROP TRIGGER collide ON rankd.rank_changes; DROP TRIGGER collide ON rankd.member_queue');
});

test('every kind of transaction is retried after a conflict, for a limited time', async () => {
  const { address } = await postgresDatabase();
  await onServer(
    address,
    `CREATE FUNCTION rankd.collide(code text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'collided' USING ERRCODE = code; END $$;
    CREATE SEQUENCE rankd.tries;
    CREATE FUNCTION rankd.collide_thrice() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('rankd.tries') % 4 <> 0 THEN PERFORM rankd.collide('40001'); END IF; RETURN 'done'; END $$`,
  );
  const db = new Database(address);
  const succeedOnce = async (asked: Reader, maySucceed: () => boolean) => {
    if (!maySucceed()) await asked.get(`SELECT rankd.collide(@code)`, { code: '40P01' });
    return 'done';
  };
  const attempts: Record<string, (maySucceed: () => boolean) => Promise<unknown>> = {
    read: (maySucceed) => db.read((reader) => succeedOnce(reader, maySucceed)),
    write: (maySucceed) => db.write((transaction) => succeedOnce(transaction, maySucceed)),
    underLock: (maySucceed) => db.underLock((transaction) => succeedOnce(transaction, maySucceed)),
  };
  for (const [name, run] of Object.entries(attempts)) {
    let tries = 0;
    expect([name, await run(() => ++tries > 3)]).toEqual([name, 'done']);
    const since = performance.now();
    await expect(
      run(() => false),
      name,
    ).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('kept conflicting with others'),
    });
    expect(performance.now() - since, name).toBeLessThan(4_000);
  }
  const alone = 'SELECT rankd.collide_thrice() AS done';
  for (const ask of [db.all(alone), db.work(alone), db.beat(alone).then(({ rows }) => rows)])
    expect(await ask).toEqual([{ done: 'done' }]);
  await db.close();
});

test('environment variables for PostgreSQL clients do not affect connections', async () => {
  const { address } = await postgresDatabase();
  const variables = { PGOPTIONS: '-c statement_timeout=1', PGREPLICATION: 'database', PGSSLNEGOTIATION: 'direct' };
  for (const [name, value] of Object.entries({
    ...variables,
    PGAPPNAME: 'x',
    PGCLIENTENCODING: 'LATIN1',
    PGSSLMODE: 'no-verify',
    PGBINARY: '1',
    PGHOST: 'elsewhere.invalid',
    PGCONNECT_TIMEOUT: '1',
  }))
    vi.stubEnv(name, value);
  const store = await openPostgresStore({ address, clock: systemClock });
  onTestFinished(() => store.close());
  vi.unstubAllEnvs();
  const sessions = `SELECT DISTINCT application_name AS name FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  expect(await onServer(address, `${sessions} AND application_name = 'rankd'`)).toEqual([{ name: 'rankd' }]);

  const { port, received } = await startFakePostgres({ authMethods: ['cleartext'] });
  vi.stubEnv('PGPASSWORD', 'of the environment');
  onTestFinished(() => void vi.unstubAllEnvs());
  await expect(
    openPostgresStore({ address: { ...address, host: '127.0.0.1', port, password: undefined }, clock: systemClock }),
  ).rejects.toThrow();
  expect(received()).not.toContain('of the environment');
});

test.each([
  [
    'with a different encoding',
    (name: string) => `CREATE DATABASE ${name} ENCODING LATIN1 LOCALE 'C' TEMPLATE template0`,
    /uses LATIN1; rankd needs UTF8/,
  ],
  [
    'that is read-only',
    (name: string) => `CREATE DATABASE ${name}; ALTER DATABASE ${name} SET default_transaction_read_only = on`,
    /default_transaction_read_only is on for the whole database/,
  ],
  [
    'without triggers',
    (name: string) => `CREATE DATABASE ${name}; ALTER DATABASE ${name} SET session_replication_role = replica`,
    /session_replication_role is not origin/,
  ],
])('a database %s is rejected in one sentence', async (_, make, says) => {
  const { address } = await postgresDatabase();
  const name = `odd_${address.database}`;
  for (const sql of make(name).split('; ')) await onServer(address, sql);
  onTestFinished(async () => void (await onServer(address, `DROP DATABASE ${name}`)));
  const opened = openPostgresStore({ address: { ...address, database: name }, clock: systemClock });
  await expect(opened).rejects.toMatchObject({ message: expect.stringMatching(says) });
});

test("the doctor names the user's settings that rankd overrides, and the one that it can't", async () => {
  const address = await databaseWith('statement_timeout = 1000; idle_session_timeout = 60000');
  const clusters = { find: () => undefined, record: () => undefined };
  const facts = await postgresOperations({ address, clock: systemClock, clusters }).serverFacts();
  const found = serverFindings(facts).map(({ grade, text }) => `${grade} ${text}`);
  expect(found).toContain(
    `ok the role or database of ${address.user} sets statement_timeout; rankd overrides it in each transaction`,
  );
  expect(found).toContainEqual(expect.stringMatching(/^warn idle_session_timeout closes rankd's connections/));
});

test('a missing head of the audit chain is reported by a check, and by the next write with a hint to run one', async () => {
  const { address } = await postgresDatabase();
  const clusters = { find: () => undefined, record: () => undefined };
  await onServer(address, 'SET session_replication_role = replica; DELETE FROM rankd.audit_head');
  const { checks } = await postgresOperations({ address, clock: systemClock, clusters }).check();
  expect(checks.find(({ name }) => name === 'audit')).toMatchObject({ ok: false, detail: 'it has no head' });
  const db = new Database(address);
  onTestFinished(() => db.close());
  await expect(db.write((transaction) => transaction.head())).rejects.toMatchObject({
    code: 'store_unavailable',
    hint: expect.stringContaining('rankd db check'),
  });
});
