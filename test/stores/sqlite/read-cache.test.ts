import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Connection } from '../../../src/stores/sqlite/connection.ts';
import { ReadCache } from '../../../src/stores/sqlite/read-cache.ts';
import { tempDir } from './support.ts';

/** A database with one number, as two handles on it know it: `ask` reads it through a cache of one, `other` is another process. */
function open() {
  const file = join(tempDir(), 'numbers.db');
  writeFileSync(file, '');
  const [db, other] = [new Connection(file), new Connection(file)];
  onTestFinished(() => {
    db.close();
    other.close();
  });
  db.useWriteAheadLog();
  db.execute('CREATE TABLE numbers (n); INSERT INTO numbers VALUES (1)');
  const cache = new ReadCache<number | undefined>(db, ['numbers']);
  let reads = 0;
  const read = () => {
    reads += 1;
    return db.get<{ n: number }>('SELECT n FROM numbers')?.n;
  };
  const set = (handle: Connection, n: number) => handle.run('UPDATE numbers SET n = @n', { n });
  return { db, other, set, ask: () => cache.get('n', 1, read), reads: () => reads };
}

test('what nobody has changed is read once', async () => {
  const { ask, reads } = open();
  expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
  expect(await ask()).toBe(1);
  expect(reads()).toBe(1);
});

test('who asks in the same turn as somebody before a commit is answered from after it', async () => {
  const { ask, set, other } = open();
  expect(await ask()).toBe(1);
  const before = ask();
  set(other, 2); // meanwhile, in another process
  expect(await Promise.all([before, ask()])).toEqual([2, 2]);
});

test('what this handle writes shows at once, also while somebody waits', async () => {
  const { ask, set, db } = open();
  expect(await ask()).toBe(1);
  const before = ask();
  set(db, 2);
  expect(await Promise.all([before, ask()])).toEqual([2, 2]);
});

test.each([
  'UPDATE numbers SET n = 2',
  'UPDATE OR IGNORE numbers SET n = 2',
  'UPDATE main.numbers SET n = 2',
  'UPDATE Numbers SET n = 2',
  'update numbers set n = 2',
  'WITH two AS (SELECT 2 AS n) UPDATE numbers SET n = (SELECT n FROM two)',
])('a write shows however it is written: %s', async (sql) => {
  const { ask, db } = open();
  expect(await ask()).toBe(1);
  db.run(sql);
  expect(await ask()).toBe(2);
});

test('a write to another table makes nobody read again', async () => {
  const { ask, db, reads } = open();
  db.execute('CREATE TABLE others (n)');
  await ask();
  const before = reads();
  db.run('INSERT INTO others VALUES (1)');
  await ask();
  expect(reads()).toBe(before);
});

test('where the database can’t be asked, all who wait are told, and those after them ask anew', async () => {
  const { ask, db } = open();
  expect(await ask()).toBe(1);
  const waiting = [ask(), ask()];
  db.close();
  for (const answer of waiting) await expect(answer).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(ask()).rejects.toMatchObject({ code: 'store_unavailable' });
});
