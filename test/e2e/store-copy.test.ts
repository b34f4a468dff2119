import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { chainStart } from '../../src/core/audit.ts';
import { judgeLink, newDiscordPerson } from '../../src/core/discord-person.ts';
import { auditPruned } from '../../src/core/events.ts';
import { judgeErasure, judgeForgetting } from '../../src/core/forgetting.ts';
import { judgeNewWebhook } from '../../src/core/webhooks/webhook-changes.ts';
import type { CopyPlace, Store } from '../../src/ports/index.ts';
import { copiedTables } from '../../src/stores/copy-contents.ts';
import { copyPlaceOf, engineOf } from '../../src/stores/engine.ts';
import {
  applied,
  awkwardText,
  begin,
  finish,
  largestId,
  lookUp,
  newChange,
  newKey,
  newSecret,
  operate,
  operator,
} from '../contracts/store/samples.ts';
import { postgresDatabase } from '../support/postgres-database.ts';
import { binary, CliHome } from '../support/run-cli.ts';
import { startStoreProxy } from '../tools/store-proxy.ts';

function newHome(): CliHome {
  const made = new CliHome();
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** Adds a row to every table, most of them with unusual values. */
async function fill(store: Store): Promise<void> {
  const clock = systemClock;
  const ports = { store, clock };
  const by = operator;
  for (let count = 0; count < 3; count += 1)
    await operate(ports).appendAudit({ by, action: 'x', subject: `old ${count}`, detail: {} });
  const { rows } = await store.auditChain({ afterId: 1, limit: 1 });
  const [upTo = chainStart] = rows;
  await store.appendAudit(auditPruned({ removed: 2, upTo, before: clock.now() }, { by: 'daemon', at: clock.now() }));
  await store.pruneAudit({ upToId: upTo.id, limit: 9 });

  await operate(ports).createKey(newKey('main', { scopes: ['verify', 'rank', 'suspend'] }), by);
  await operate(ports).createKey(newKey('gone', { scopes: ['verify'], expiresAt: largestId, isSimulated: true }), by);
  await operate(ports).revokeKey('key_gone', by);
  await operate(ports).rotateKey(
    { keyId: 'key_main', secret: newSecret('other'), oldExpiresAt: clock.now() + 1e6 },
    by,
  );
  await operate(ports).setRules(
    { keyId: 'key_main', rules: { maxRank: 20, isSystem: true, direction: 'promote' } },
    by,
  );
  const { secretId = '' } = (await lookUp(store, 'main')) ?? {};
  await store.recordKeyUses([{ secretId, at: 77, placeId: 42 }]);
  await operate(ports).addEntries({ keyId: 'key_main', placeIds: [42, largestId], note: awkwardText }, by);
  await operate(ports).setEntriesActive({ keyId: 'key_main', placeIds: [largestId], active: false }, by);

  const suspension = newChange({
    ...{ hold: { does: 'begin', id: 'hold_a', kind: 'suspension', endsAt: clock.now() + 1e6 }, reason: awkwardText },
    ...{ rankeeName: awkwardText, idempotencyKey: 'f'.repeat(64), fingerprint: 'e'.repeat(64) },
  });
  await begin(store, suspension);
  await finish(ports, suspension.id, applied);
  await begin(store, newChange({ rankeeId: 9, rankeeName: 'who is left open' }));
  const forgetting = { userId: 7, pseudonym: -77 };
  await store.forgetPerson(forgetting, judgeForgetting(forgetting, { by, at: clock.now() }));

  await operate(ports).updateWorkspace({ plan: 'free' }, by);
  await store.storeBaseRole('group 7', largestId);
  await store.storeServedGroup({ group: 'group 7', configFile: '/srv/rankd.yaml' });
  await store.storeRoles('group 7', [{ id: 70, name: awkwardText, rank: 20 }]);
  const meaning = {
    setting: 'policy.locked_roles',
    entry: awkwardText,
    roles: [{ id: 70, name: 'Officer', rank: 20 }],
  };
  await store.updateMeanings('group 7', () => ({ change: [{ ...meaning, alarm: 'renamed' }], events: [] }));
  await store.storeUserName({ id: 8, name: 'Builder', at: clock.now() }, { since: 0 });
  const webhook = {
    ...({ id: 'wh_a', name: 'a', kind: 'standard', shown: 'a/***', createdAt: 5 } as const),
    events: ['all'],
    address: 'https://a/a',
  };
  const person = newDiscordPerson('1100000000000000007');
  await store.updateDiscordPerson(person.discordId, judgeLink(person, largestId, { by, at: clock.now() }));
  const request = { id: 'erasure_a', userId: largestId, requestedAt: 4, receivedAt: 5 };
  await store.recordErasure(request, judgeErasure(request, { by, at: 5, pseudonym: -78 }));
  await store.updateWebhooks(judgeNewWebhook(webhook, { by, at: 0 }));
  const delivery = { webhookId: 'wh_a', sequence: 4, type: 'rank.changed', state: 'waiting', tries: 1 } as const;
  await store.recordProgress({ webhookId: 'wh_a', sequences: [] }, () => ({
    ...{ webhook: {}, events: [], put: [{ ...delivery, nextTryAt: 9_000, firstAt: 1, lastAt: 1 }] },
  }));
}

/** Sets a retention period. Without one, `rankd audit verify` reports the events that `fill` removes. */
const keep = { RANKD_AUDIT_KEEP: '365d' };

async function filledDirectory(): Promise<CliHome> {
  const home = newHome();
  const store = await engineOf({ dataDir: home.dataDir, clock: systemClock }).openStore();
  await fill(store);
  await store.close();
  return home;
}

function contentsOf(place: CopyPlace) {
  return place.read(async (contents) => {
    const tables: Record<string, unknown[]> = {};
    for (const table of Object.keys(copiedTables)) {
      tables[table] = [];
      for await (const rows of contents.rows(table)) tables[table].push(...rows);
    }
    return { tables, numbers: await contents.numbers() };
  });
}

async function sql(url: string, text: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(text);
  await client.end();
  return rows;
}

test('a copy from a data directory to PostgreSQL and back is identical to the last byte', async () => {
  const home = await filledDirectory();
  const { url, address } = await postgresDatabase('empty');
  const there = await home.run(['store', 'copy', '--from', home.dataDir, '--to', url, '--json']);
  expect(there).toMatchObject({ code: 0, stderr: '' });
  const { copy } = there.json<{ copy: { rows: Record<string, number>; auditHead: string } }>();
  expect(Object.keys(copy.rows)).toEqual(Object.keys(copiedTables));
  for (const [table, count] of Object.entries(copy.rows)) expect([table, count > 0]).toEqual([table, true]);

  const back = home.path('again');
  const again = await home.run(['store', 'copy', '--from', url, '--to', 'again']);
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('compared the two row by row') });
  expect(again.stdout).toContain(copy.auditHead);

  const [first, second, third] = await Promise.all(
    [{ dataDir: home.dataDir }, { server: address }, { dataDir: back }].map(async (where) =>
      contentsOf(await copyPlaceOf(where, systemClock)),
    ),
  );
  expect(second?.tables).toEqual(first?.tables);
  expect(third).toEqual({ ...second, numbers: expect.anything() });
  for (const [table, number] of second?.numbers ?? [])
    expect([table, third?.numbers.get(table)]).toEqual([table, number]);

  const env = { RANKD_STORE_URL: url, ...keep };
  expect(await home.here(['audit', 'verify'], { env })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^ok: /),
  });
  expect(await home.here(['audit', 'verify', '--data-dir', back], { env: keep })).toMatchObject({ code: 0 });
  for (const where of [{ env }, { env: {}, dataDir: back }]) {
    // its event gets the sequence number after the copied ones
    expect((await home.here(['key', 'create', 'new'], where)).code).toBe(0);
    const { changes } = (await home.here(['history', 'list', '--json'], where)).json<{ changes: unknown[] }>();
    expect(changes).toHaveLength(2);
  }
  const [open] = await sql(url, `SELECT node, state FROM rankd.rank_changes WHERE state = 'pending'`);
  expect(open).toEqual({ node: null, state: 'pending' }); // the next daemon reconciles it
});

test('a backup of PostgreSQL is a file that can be restored into a data directory, or back into a database', async () => {
  const home = await filledDirectory();
  const [{ url }, other] = [await postgresDatabase('empty'), await postgresDatabase('empty')];
  expect(await home.here(['store', 'copy', '--from', home.dataDir, '--to', url])).toMatchObject({ code: 0 });
  const env = { RANKD_STORE_URL: url };
  const made = await home.here(['backup', 'copy.db', '--json'], { env });
  expect(made.json()).toMatchObject({ backup: { keys: 2, changes: 2, file: home.path('copy.db') } });
  expect((await home.here(['backup', 'copy.db'], { env })).code).toBe(4);
  const nowhere = await home.here(['backup', 'gone/copy.db'], { env });
  expect(nowhere).toMatchObject({
    code: 3,
    stderr: expect.stringContaining(`The folder ${home.path('gone')} does not exist.`),
  });
  const piped = await home.shell(`"${binary}" backup - > piped.db`, { env });
  expect(piped).toMatchObject({ code: 0 });
  expect(readFileSync(home.path('piped.db')).length).toBe(readFileSync(home.path('copy.db')).length);
  for (const own of ['daemon.lock', 'rankd.node'])
    expect((await home.here(['backup', '--force', join(home.dataDir, own)], { env })).stderr).toContain(
      "is one of rankd's own files",
    );
  expect(readdirSync(home.dataDir).filter((name) => name.includes('scratch'))).toEqual([]);

  const restored = home.path('restored');
  expect(await home.here(['restore', '-y', 'copy.db', '--data-dir', restored])).toMatchObject({ code: 0 });
  expect(await home.here(['audit', 'verify', '--data-dir', restored], { env: keep })).toMatchObject({ code: 0 });
  const refused = await home.here(['restore', '-y', 'copy.db'], { env });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('rankd store copy --from FILE --to URL') });
  expect(await home.here(['store', 'copy', '--from', 'copy.db', '--to', other.url])).toMatchObject({ code: 0 });
  expect(await home.here(['audit', 'verify'], { env: { RANKD_STORE_URL: other.url, ...keep } })).toMatchObject({
    code: 0,
  });
});

describe('a failed copy is reported in one sentence, and creates nothing at the target', () => {
  const nowhere = 'postgres://rankd@127.0.0.1:1/rankd';
  const cases: Array<[what: string, from: string, to: string, code: number, says: RegExp]> = [
    ['no such place', 'gone', 'new', 3, /There is no .*gone/],
    ['a directory without a database', '.', 'new', 3, /There is no rankd database in/],
    ['a file that is not a backup', 'text.txt', 'new', 5, /is not a rankd database/],
    ['a file to copy to', 'backup.db', 'text.txt', 2, /the target of a copy must be a data directory or a database/],
    ['a directory with a database', 'backup.db', 'DATA', 4, /already contains a rankd database/],
    ['a newer schema', 'newer', 'new', 78, /schema 99/],
    ['a broken audit', 'broken', 'new', 4, /The audit is broken at event #\d+, so nothing was copied/],
    ['a broken audit, to PostgreSQL', 'broken', 'EMPTY', 4, /The audit is broken at event #\d+/],
    ['a server that does not respond', nowhere, 'new', 69, /can't be reached/],
    ['a target server that does not respond', 'backup.db', nowhere, 69, /can't be reached/],
    ['one place twice', 'backup.db', './backup.db', 2, /--from and --to are the same place: .*backup\.db/],
    ['one directory twice', 'DATA', 'DATA', 2, /the same place: .*\/data/],
    ['one database twice', 'USED', 'USED', 2, /the same place: \w+ on 127/],
    ['another engine', 'backup.db', 'mysql://rankd@db/rankd', 78, /--to: is not a store URL; expected postgres:/],
    [
      'no place for a directory',
      'backup.db',
      '/dev/null/new',
      78,
      /is not a directory[\s\S]*try: choose a directory with --from or --to\n/,
    ],
    ['a URL with a parameter', 'postgres://a@b/c?ssl=1', 'new', 78, /--from: has the parameter ssl,/],
    ['an empty database', 'EMPTY', 'new', 3, /There is no rankd data in the database/],
    ['a database with data', 'backup.db', 'USED', 4, /There is already rankd data in/],
  ];

  test('whatever the cause', async () => {
    const home = await filledDirectory();
    const [empty, used] = [await postgresDatabase('empty'), await postgresDatabase()];
    expect(await home.here(['key', 'create', 'x'], { env: { RANKD_STORE_URL: used.url } })).toMatchObject({ code: 0 });
    expect(await home.here(['backup', 'backup.db'])).toMatchObject({ code: 0 });
    writeFileSync(home.path('text.txt'), 'no database');
    const variant = (name: string, text: string) => {
      mkdirSync(home.path(name), { mode: 0o700 });
      copyFileSync(home.path('backup.db'), home.path(`${name}/rankd.db`));
      const db = new Database(home.path(`${name}/rankd.db`));
      db.exec(text);
      db.close();
    };
    variant('newer', 'PRAGMA user_version = 99');
    variant('broken', `DROP TRIGGER audit_is_never_edited; UPDATE audit_events SET subject = 'else' WHERE id = 6`);
    const where = (text: string) => ({ DATA: home.dataDir, EMPTY: empty.url, USED: used.url })[text] ?? text;
    for (const [what, from, to, code, says] of cases) {
      const result = await home.here(['store', 'copy', '--from', where(from), '--to', where(to)]);
      expect([what, result.code, result.stderr]).toEqual([what, code, expect.stringMatching(says)]);
      expect(result.stderr.match(/^error:/gm)).toHaveLength(1);
      expect(existsSync(home.path('new/rankd.db')), what).toBe(false);
      if (existsSync(home.path('new'))) expect(readdirSync(home.path('new')), what).toEqual(['daemon.lock']);
    }
    expect(await sql(empty.url, `SELECT to_regnamespace('rankd') AS made`)).toEqual([{ made: null }]);
    expect(await home.here(['store', 'copy', '--from', 'backup.db', '--to', 'new'])).toMatchObject({ code: 0 });
  });

  test('and can be repeated on either engine if it was killed, or lost its server, half-way', async () => {
    const home = await filledDirectory();
    const { url, address } = await postgresDatabase('empty');
    await using proxy = await startStoreProxy(address.port);
    const through = url.replace(`:${address.port}/`, `:${proxy.port}/`);
    const connected = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'rankd'`;
    proxy.mode = 50;
    // one connection for all polls, because opening one takes too long
    const watcher = new pg.Client({ connectionString: url });
    await watcher.connect();
    onTestFinished(() => watcher.end());
    /** Resolves once the server has received a query that contains `statement`. */
    const isAsked = async (statement: string) => {
      const asks = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%${statement}%' AND pid <> pg_backend_pid()`;
      await expect.poll(async () => (await watcher.query(asks)).rowCount, { interval: 5 }).toBe(1);
    };
    const killed = async (from: string, to: string, statement: string) => {
      const copying = home.start(['store', 'copy', '--from', from, '--to', to]);
      const ended = once(copying, 'exit');
      await isAsked(statement);
      copying.kill('SIGKILL');
      expect(await ended).toEqual([null, 'SIGKILL']);
      await expect.poll(async () => (await sql(url, connected)).length).toBe(0);
    };
    const cutOff = async (from: string, to: string, statement: string) => {
      const copied = home.here(['store', 'copy', '--from', from, '--to', to]);
      await isAsked(statement);
      proxy.cut();
      const { code, stderr } = await copied;
      expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringMatching(/server can't be reached/) });
    };
    await killed(home.dataDir, through, 'SELECT 1 AS done');
    expect(await sql(url, `SELECT to_regnamespace('rankd') AS made`)).toEqual([{ made: null }]);
    await cutOff(home.dataDir, through, 'SELECT 1 AS done');
    expect(await sql(url, `SELECT to_regnamespace('rankd') AS made`)).toEqual([{ made: null }]);
    expect(await home.here(['store', 'copy', '--from', home.dataDir, '--to', url])).toMatchObject({ code: 0 });
    await killed(through, 'new', 'rankd.audit_events ');
    expect(existsSync(join(home.path('new'), 'rankd.db'))).toBe(false);
    await cutOff(through, 'new', 'rankd.audit_events ');
    expect(readdirSync(home.path('new'))).toEqual(['daemon.lock']);
    expect(await home.here(['store', 'copy', '--from', url, '--to', 'new'])).toMatchObject({ code: 0 });
  });

  test('if a daemon uses the source or the target', async () => {
    const home = await filledDirectory();
    const { url, address } = await postgresDatabase();
    const outcome = async (from: string, to: string) => {
      const { code, stderr } = await home.here(['store', 'copy', '--from', from, '--to', to]);
      return { code, stderr };
    };
    const { operations } = engineOf({ dataDir: home.dataDir, clock: systemClock });
    const lock = await operations.lockDaemon();
    expect(await outcome(home.dataDir, url)).toEqual({
      code: 4,
      stderr: expect.stringMatching(/A rankd daemon is already using the data directory/),
    });
    await lock[Symbol.asyncDispose]();
    const store = await engineOf({ dataDir: home.path('node'), clock: systemClock, server: address }).openStore();
    await store.getWorkspace();
    const open = {
      code: 4,
      stderr: expect.stringMatching(/rankd has .* open connections? to .*[\s\S]*stop every daemon/),
    };
    expect(await outcome(url, 'new')).toEqual(open);
    expect(await outcome(home.dataDir, url)).toEqual(open);
    await store.close();
    // the server takes a moment to close connections
    await expect.poll(() => outcome(home.dataDir, url)).toMatchObject({ code: 0 });
  });
});

test('every table of both engines is either copied or belongs to only one database', async () => {
  const ofOneDatabase = {
    sqlite: ['login_links', 'member_queue', 'schema_steps', 'sqlite_sequence'],
    postgres: [
      'login_links',
      'access_version',
      'audit_head',
      'declarations',
      'webhook_declarations',
      'idempotency_claims',
      'limit_counts',
      'member_queue',
      'node_commands',
      'node_tasks',
      'nodes',
      'platform_budget',
      'schema_steps',
    ],
  };
  const copied = Object.keys(copiedTables);
  const { url } = await postgresDatabase();
  const inPostgres = await sql(
    url,
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'rankd'::regnamespace AND relkind = 'r'`,
  );
  expect(inPostgres.map(({ name }) => name).sort()).toEqual([...copied, ...ofOneDatabase.postgres].sort());
  const { dataDir } = await filledDirectory();
  const db = new Database(join(dataDir, 'rankd.db'));
  const inSqlite = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all() as Array<{ name: string }>;
  db.close();
  expect(inSqlite.map(({ name }) => name).sort()).toEqual([...copied, ...ofOneDatabase.sqlite].sort());
});
