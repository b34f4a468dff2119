import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../../src/stores/sqlite/engine/connection.ts';
import { SqliteDatabase } from '../../../../src/stores/sqlite/engine/database.ts';
import { startNode } from '../../../support/node-process.ts';
import { tempDir } from '../../../support/temp-dir.ts';

/** Creates a database that another process locks for `ms` milliseconds. */
async function databaseLockedFor(ms: number): Promise<string> {
  const file = join(tempDir(), 'held.db');
  writeFileSync(file, '');
  const holder = startNode(`
    import Database from 'better-sqlite3';
    const held = new Database(${JSON.stringify(file)});
    held.exec('CREATE TABLE numbers (n); INSERT INTO numbers VALUES (1); BEGIN EXCLUSIVE');
    console.log('held');
    setTimeout(() => held.exec('COMMIT'), ${ms});
  `);
  if (holder.stdout === null) throw new Error('no stdout');
  await once(holder.stdout, 'data');
  return file;
}

test('a read or write waits while another process has locked the database', async () => {
  const db = new Connection(await databaseLockedFor(150));
  onTestFinished(() => db.close());
  expect(db.get('SELECT n FROM numbers')).toEqual({ n: 1 });
  expect(db.run('UPDATE numbers SET n = 2')).toBe(1);
});

test('opening a locked database fails with a retryable error after the timeout', async () => {
  const file = await databaseLockedFor(60_000);
  const locked = { code: 'store_unavailable', message: expect.stringContaining('locked'), retryAfterMs: 1_000 };
  expect(() => new Connection(file, { lockTimeoutMs: 50 })).toThrow(expect.objectContaining(locked));
});

test('a statement that finds the database locked fails at once within a transaction, which is retried as a whole', async () => {
  const file = join(tempDir(), 'held.db');
  const holder = new Database(file);
  holder.exec('CREATE TABLE numbers (n)');
  const db = new Connection(file, { lockTimeoutMs: 200 });
  onTestFinished(() => db.close());
  onTestFinished(() => void holder.close());
  holder.exec('BEGIN EXCLUSIVE');
  let runs = 0;
  const work = () => {
    runs += 1;
    db.read(() => undefined); // a nested transaction does not end the outer one
    return db.get('SELECT n FROM numbers');
  };
  expect(() => db.read(work)).toThrow(expect.objectContaining({ code: 'store_unavailable' }));
  expect(runs).toBeGreaterThan(5);
});

test.each([
  'UPDATE numbers SET n = n + 1',
  'UPDATE OR IGNORE numbers SET n = n + 1',
  'WITH one AS (SELECT 1 AS n) UPDATE numbers SET n = n + (SELECT n FROM one)',
  'INSERT INTO numbers VALUES (1)',
])('the change token differs after any write by this handle or another: %s', async (sql) => {
  const file = join(tempDir(), 'numbers.db');
  writeFileSync(file, '');
  const [connection, other] = [new Connection(file), new Connection(file)];
  connection.useWriteAheadLog();
  other.execute('CREATE TABLE numbers (n); INSERT INTO numbers VALUES (1)');
  const db = new SqliteDatabase(connection);
  onTestFinished(() => db.close());
  onTestFinished(() => other.close());
  const tokens = [db.changeToken];
  expect(db.changeToken).toBe(tokens[0]);
  for (const write of [() => db.work(sql), async () => other.run(sql)]) {
    await write();
    tokens.push(db.changeToken);
  }
  expect(new Set(tokens).size).toBe(3);
});
