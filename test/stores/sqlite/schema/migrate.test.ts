import { hash } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { judgeNewWebhook } from '../../../../src/core/webhooks/webhook-changes.ts';
import { appendEvent } from '../../../../src/stores/sqlite/audit.ts';
import { Connection } from '../../../../src/stores/sqlite/engine/connection.ts';
import { migrate } from '../../../../src/stores/sqlite/schema/migrate.ts';
import { migrations } from '../../../../src/stores/sqlite/schema/migrations.ts';
import { openSqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts';
import { keepOutcome } from '../../../../src/usecases/change/change-outcome.ts';
import { verifyAudit } from '../../../../src/usecases/history/verify-audit.ts';
import { applied, begin, lookUp, newChange, newSecret, operate } from '../../../contracts/store/samples.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { modeOf, tempDir } from '../../../support/temp-dir.ts';

const clock = new ManualClock();
const nextStep = "ALTER TABLE keys ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'";
const next = migrations.length + 1;

/** A data directory with a database of the released schema, closed. */
async function releasedDatabase(): Promise<{ dataDir: string; file: string; copy: string }> {
  const dataDir = tempDir();
  const store = await openSqliteStore({ dataDir, clock });
  await operate({ store: store, clock }).updateWorkspace({ plan: 'free' }, 'cli:ann@host');
  await store.close();
  const file = join(dataDir, 'rankd.db');
  return { dataDir, file, copy: `${file}.before-v${next}` };
}

function connect(file: string): Connection {
  const db = new Connection(file);
  onTestFinished(() => db.close());
  return db;
}

const versionOf = (file: string) => connect(file).get('PRAGMA user_version');

test('an older database is brought up to date, with a private copy of it as it was', async () => {
  const { file, copy } = await releasedDatabase();
  const db = connect(file);
  migrate(db, clock, { migrations: [...migrations, nextStep] });
  expect(versionOf(file)).toEqual({ user_version: next });
  expect(db.get('SELECT plan FROM workspace')).toEqual({ plan: 'free' });
  expect(db.all('SELECT colour FROM keys')).toEqual([]);
  expect(modeOf(copy)).toBe('600');
  expect(versionOf(copy)).toEqual({ user_version: migrations.length });
  expect(connect(copy).get('SELECT plan FROM workspace')).toEqual({ plan: 'free' });
});

test('the copy opens as a database of the older rankd', async () => {
  const { file, copy } = await releasedDatabase();
  migrate(connect(file), clock, { migrations: [...migrations, nextStep] });
  const older = tempDir();
  copyFileSync(copy, join(older, 'rankd.db'));
  const store = await openSqliteStore({ dataDir: older, clock });
  expect(await store.getWorkspace()).toMatchObject({ plan: 'free' });
  await store.close();
});

test('a step that fails leaves the database as it was, and the next attempt succeeds', async () => {
  const { dataDir, file, copy } = await releasedDatabase();
  const db = connect(file);
  const broken = [...migrations, `${nextStep}; CREATE TABLE keys (a)`];
  expect(() => migrate(db, clock, { migrations: broken })).toThrow(expect.objectContaining({ name: 'RankdError' }));
  expect(versionOf(file)).toEqual({ user_version: migrations.length });
  expect(() => db.all('SELECT colour FROM keys')).toThrow();
  migrate(db, clock, { migrations: [...migrations, nextStep] });
  expect(versionOf(file)).toEqual({ user_version: next });
  expect(versionOf(copy)).toEqual({ user_version: migrations.length });
  expect(readdirSync(dataDir).filter((name) => name.includes('unfinished'))).toEqual([]);
});

test('what an attempt that was cut off left behind does not stop the next one', async () => {
  const { file, copy } = await releasedDatabase();
  writeFileSync(`${copy}.unfinished`, 'half');
  migrate(connect(file), clock, { migrations: [...migrations, nextStep] });
  expect(versionOf(copy)).toEqual({ user_version: migrations.length });
  expect(existsSync(`${copy}.unfinished`)).toBe(false);
});

test('a database that is up to date is not copied', async () => {
  const { dataDir, file } = await releasedDatabase();
  const db = connect(file);
  migrate(db, clock);
  db.close();
  expect(readdirSync(dataDir)).toEqual(['rankd.db']);
});

test('a database of a newer rankd is refused with the way out, and nothing of it changes', async () => {
  const { dataDir, file } = await releasedDatabase();
  migrate(connect(file), clock, { migrations: [...migrations, nextStep] });
  const opening = openSqliteStore({ dataDir, clock });
  await expect(opening).rejects.toMatchObject({
    name: 'RankdError',
    code: 'schema_newer',
    message: expect.stringContaining(`schema ${next}`),
    hint: expect.stringContaining(`rankd.db.before-v${next}`),
  });
  expect(versionOf(file)).toEqual({ user_version: next });
});

test('of an Idempotency-Key that an older rankd kept, only its SHA-256 is left, by which it is found', async () => {
  const dataDir = tempDir();
  const file = join(dataDir, 'rankd.db');
  writeFileSync(file, '');
  const db = connect(file);
  const step = migrations.findIndex((migration) => migration.includes('sha256(idempotency_key)'));
  migrate(db, clock, { migrations: migrations.slice(0, step) });
  db.execute(`
    INSERT INTO rank_changes (id, group_title, state, message, rankee_id, rankee_name, ranker_id, ranker_name, new_rank_id, roles_before,
      roles_after, phase, key_id, done_by, dry_run, demotion, top_rank, requested_at, idempotency_key, fingerprint)
    VALUES ('chg_1', 'g', 'applied', '', 1, '', 0, '', 20, '[]', '[]', 'forward', 'key_1', 'key:key_1', 0, 0, 0, 5, 'one', 'f')`);
  const store = await openSqliteStore({ dataDir, clock });
  onTestFinished(() => store.close());
  const idempotencyKey = hash('sha256', 'one');
  const claim = { keyId: 'key_1', group: 'g', since: 0, fingerprint: 'ff' };
  const change = { id: 'chg_1', idempotencyKey };
  expect(await store.claimIdempotencyKey({ ...claim, idempotencyKey })).toMatchObject({ is: 'used', change });
  expect(await store.claimIdempotencyKey({ ...claim, idempotencyKey: 'one' })).toStrictEqual({ is: 'claimed' });
});

test('a database of before webhooks and suspensions keeps its keys, changes and audit, and works with both', async () => {
  const dataDir = tempDir();
  const file = join(dataDir, 'rankd.db');
  writeFileSync(file, '');
  const db = connect(file);
  const step = migrations.findIndex((migration) => migration.includes('CREATE TABLE holds'));
  migrate(db, clock, { migrations: migrations.slice(0, step) });
  db.execute(`
    INSERT INTO keys (id, name, mode, scopes, created_at) VALUES ('key_main', 'main', 'live', '["verify","rank"]', 5);
    INSERT INTO key_secrets (key_id, hash, masked, created_at) VALUES ('key_main', x'${newSecret('old').hash}', 'rk_live_old…abc', 5);
    INSERT INTO whitelist VALUES ('key_main', 42, 1, '', 5, NULL);
    INSERT INTO rank_changes (id, group_title, state, message, rankee_id, rankee_name, ranker_id, ranker_name, new_rank_id, roles_before,
      roles_after, phase, key_id, done_by, dry_run, demotion, top_rank, requested_at, finished_at)
    VALUES ('chg_old', 'g', 'applied', 'Done.', 7, 'Ann', 0, '', 20, '[100,200]', '[100,300]', 'forward', 'key_main', 'key:key_main', 0, 0, 20, 5, 6)`);
  const detail = { code: null, rolesBefore: [100, 200], rolesAfter: [100, 300] };
  appendEvent(db, {
    at: 6,
    by: 'key:key_main',
    action: 'rank.applied',
    subject: 'chg_old',
    detail,
    people: { rankeeId: 7 },
  });
  db.close();
  const store = await openSqliteStore({ dataDir, clock });
  onTestFinished(() => store.close());
  expect(await lookUp(store, 'old')).toMatchObject({ key: { id: 'key_main' }, entry: { placeId: 42 } });
  expect(await store.listHolds({ group: 'g', limit: 9 })).toEqual([]);

  const shown = { kind: 'standard', shown: 'https://bot.example/***', address: 'https://bot.example/x' } as const;
  const webhook = { id: 'wh_a', name: 'bot', ...shown, events: ['all'], createdAt: 7 };
  await store.updateWebhooks(judgeNewWebhook(webhook, { by: 'cli:ann@host', at: 7 }));
  expect(await store.listWebhooks()).toMatchObject([{ name: 'bot', cursor: 1 }]); // what was before it is not told
  const hold = { does: 'begin', id: 'hold_1', kind: 'temporary', endsAt: 99 } as const;
  const change = newChange({ id: 'chg_new', group: 'g', hold, rolesBefore: [100, 300], rolesAfter: [100, 400] });
  expect(await begin(store, change, { after: 'chg_old' })).toBe(true);
  await keepOutcome({ store, clock }, change.id, { ...applied, rolesAfter: [100, 400] });
  expect(await store.listHolds({ group: 'g', limit: 9 })).toMatchObject([
    { id: 'hold_1', state: 'active', rankeeId: 7 },
  ]);
  const told = await store.eventsAfter({ after: 0, actions: ['rank.applied', 'suspension.begin'], limit: 9 });
  expect(told.events.map(({ event, change }) => [event.action, change?.id])).toEqual([
    ['rank.applied', 'chg_old'],
    ['rank.applied', 'chg_new'],
    ['suspension.begin', undefined],
  ]);
  expect(await verifyAudit({ store })).toMatchObject({ rows: 5, isIntact: true });
});
