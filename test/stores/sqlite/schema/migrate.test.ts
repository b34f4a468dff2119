import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../../src/stores/sqlite/engine/connection.ts';
import { migrate } from '../../../../src/stores/sqlite/schema/migrate.ts';
import { migrations } from '../../../../src/stores/sqlite/schema/migrations.ts';
import { openSqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts';
import { operate } from '../../../contracts/store/samples.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { modeOf, tempDir } from '../../../support/temp-dir.ts';

const clock = new ManualClock();
const nextStep = "ALTER TABLE keys ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'";
const next = migrations.length + 1;

/** Creates a data directory with a closed database of the released schema. */
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

test('an older database is migrated only after a private copy of it has been made', async () => {
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

test('the copy can be opened by the older rankd', async () => {
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

test('files left by an interrupted attempt do not affect the next one', async () => {
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

test('a database of a newer rankd is rejected with a hint, and not changed', async () => {
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
