import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../src/stores/sqlite/engine/connection.ts';
import { SqliteDatabase } from '../../../src/stores/sqlite/engine/database.ts';
import { localWriter, threadWriter } from '../../../src/stores/sqlite/engine/writer.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { operate } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { runNode } from '../../support/node-process.ts';
import { modeOf, tempDir } from '../../support/temp-dir.ts';

const files = ['rankd.db', 'rankd.db-shm', 'rankd.db-wal'];

async function open(dataDir: string) {
  const store = await openSqliteStore({ dataDir, clock: new ManualClock() });
  onTestFinished(() => store.close());
  return store;
}

test('the data directory and its files are private whatever the umask', async () => {
  const previous = process.umask(0);
  onTestFinished(() => void process.umask(previous));
  const dataDir = join(tempDir(), 'deep', 'data');
  const store = await open(dataDir);
  await operate({ store }).updateWorkspace({ plan: 'free' }, 'cli:ann@host');
  expect(modeOf(dataDir)).toBe('700');
  expect(readdirSync(dataDir).sort()).toEqual(files);
  for (const file of readdirSync(dataDir)) expect([file, modeOf(join(dataDir, file))]).toEqual([file, '600']);
});

test('in a directory that others can read, rankd makes only its own files private', async () => {
  const dataDir = tempDir();
  chmodSync(dataDir, 0o755);
  const store = await open(dataDir);
  await store.close();
  for (const file of files) writeFileSync(join(dataDir, file), '', { flag: 'a' });
  for (const file of files) chmodSync(join(dataDir, file), 0o644);
  writeFileSync(join(dataDir, 'notes.txt'), 'mine', { mode: 0o644 });
  const again = await open(dataDir);
  await operate({ store: again }).updateWorkspace({ plan: 'top' }, 'cli:ann@host');
  expect(modeOf(dataDir)).toBe('755');
  expect(modeOf(join(dataDir, 'notes.txt'))).toBe('644');
  for (const file of files) expect(modeOf(join(dataDir, file))).toBe('600');
});

test('data persists after the store is closed and opened again', async () => {
  const dataDir = tempDir();
  const store = await open(dataDir);
  const workspace = await operate({ store }).updateWorkspace({ active: false }, 'cli:ann@host');
  await store.close();
  expect(await (await open(dataDir)).getWorkspace()).toEqual(workspace);
});

test('commits are synchronous, foreign keys are enforced, and the schema is not trusted', async () => {
  const dataDir = tempDir();
  await open(dataDir);
  for (const openWriter of [localWriter, threadWriter]) {
    const db = new SqliteDatabase(new Connection(join(dataDir, 'rankd.db')), { openWriter });
    onTestFinished(() => db.close());
    expect(await db.work('PRAGMA synchronous')).toEqual([{ synchronous: 2 }]);
    expect(await db.work('PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect(await db.work('PRAGMA foreign_keys')).toEqual([{ foreign_keys: 1 }]);
    expect(await db.work('PRAGMA trusted_schema')).toEqual([{ trusted_schema: 0 }]);
  }
});

test('a file that is not a database is rejected by name and not changed', async () => {
  const dataDir = tempDir();
  const file = join(dataDir, 'rankd.db');
  const content = 'a letter to my grandmother, much longer than the header of a database would be'.repeat(10);
  writeFileSync(file, content, { mode: 0o644 });
  await expect(open(dataDir)).rejects.toMatchObject({
    name: 'RankdError',
    code: 'config_invalid',
    message: expect.stringContaining(file),
    hint: expect.stringContaining('--data-dir'),
  });
  expect(readFileSync(file, 'utf8')).toBe(content);
  expect(modeOf(file)).toBe('644');
});

test.each(['', 'PRAGMA application_id = 7; PRAGMA user_version = 1;'])(
  'a database of another program is rejected and not changed (%s)',
  async (header) => {
    const dataDir = tempDir();
    const file = join(dataDir, 'rankd.db');
    new Database(file).exec(`${header} CREATE TABLE theirs (a)`).close();
    const before = readFileSync(file);
    await expect(open(dataDir)).rejects.toMatchObject({ code: 'config_invalid' });
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(readdirSync(dataDir)).toEqual(['rankd.db']);
  },
);

test('a data directory that is a file, or a database that is a directory, is rejected', async () => {
  const dataDir = tempDir();
  const file = join(dataDir, 'file');
  writeFileSync(file, '');
  await expect(open(file)).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringContaining(file) });
  await expect(open(join(file, 'sub'))).rejects.toMatchObject({ code: 'config_invalid' });
  mkdirSync(join(dataDir, 'rankd.db'));
  await expect(open(dataDir)).rejects.toMatchObject({ name: 'RankdError', code: 'store_unavailable' });
});

test('an unwritable directory is reported as no_permission, and the error names it', async () => {
  const dataDir = tempDir();
  chmodSync(dataDir, 0o500);
  const code = `
    import { openSqliteStore } from './src/stores/sqlite/sqlite-store.ts';
    import { systemClock as clock } from './src/base/clock.ts';
    await openSqliteStore({ dataDir: ${JSON.stringify(dataDir)}, clock }).then(
      () => console.log('"opened"'),
      ({ name, code, message, hint }) => console.log(JSON.stringify({ name, code, message, hint })),
    );`;
  const nobody = 65_534; // root can write anywhere, so the test needs another user
  expect(await runNode(code, process.getuid?.() === 0 ? { uid: nobody } : {})).toEqual({
    name: 'RankdError',
    code: 'no_permission',
    message: expect.stringContaining(dataDir),
    hint: expect.stringContaining(dataDir),
  });
  expect(existsSync(join(dataDir, 'rankd.db'))).toBe(false);
});
