import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Connection } from '../../../../src/stores/sqlite/engine/connection.ts';
import { ReadCache } from '../../../../src/stores/sqlite/engine/read-cache.ts';
import { tempDir } from '../support.ts';

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
  const isReadAnew = (id: number) => {
    const before = reads;
    cache.get('many', id, read);
    return reads > before;
  };
  return { db, other, isReadAnew, set, ask: () => cache.get('n', 1, read), reads: () => reads };
}

/** The callback of the event loop that asked is over; another one may have received something. */
const pause = () => Promise.resolve();

test('what nobody has changed is read once', async () => {
  const { ask, reads } = open();
  expect([ask(), ask()]).toEqual([1, 1]);
  await pause();
  expect(ask()).toBe(1);
  expect(reads()).toBe(1);
});

test('what callers make up does not fill the memory: of very many, only the last are remembered', () => {
  const { isReadAnew } = open();
  for (let id = 0; id <= 10_000; id += 1) expect(isReadAnew(id)).toBe(true);
  expect(isReadAnew(10_000)).toBe(false);
  expect(isReadAnew(0)).toBe(true);
});

test('what another process commits shows after a pause', async () => {
  const { ask, set, other } = open();
  expect(ask()).toBe(1);
  set(other, 2);
  await pause();
  expect(ask()).toBe(2);
});

test('whether another process wrote is asked once for all that is asked for without a pause', async () => {
  const { ask, db } = open();
  const asked = vi.spyOn(db, 'othersVersion', 'get');
  ask();
  ask();
  expect(asked).toHaveBeenCalledTimes(1);
  await pause();
  ask();
  expect(asked).toHaveBeenCalledTimes(2);
});

test('what this handle writes shows at once', () => {
  const { ask, set, db } = open();
  expect(ask()).toBe(1);
  set(db, 2);
  expect(ask()).toBe(2);
});

test.each([
  'UPDATE numbers SET n = 2',
  'UPDATE OR IGNORE numbers SET n = 2',
  'UPDATE main.numbers SET n = 2',
  'UPDATE Numbers SET n = 2',
  'update numbers set n = 2',
  'WITH two AS (SELECT 2 AS n) UPDATE numbers SET n = (SELECT n FROM two)',
])('a write shows however it is written: %s', (sql) => {
  const { ask, db } = open();
  expect(ask()).toBe(1);
  db.run(sql);
  expect(ask()).toBe(2);
});

test('a write to another table makes nobody read again', () => {
  const { ask, db, reads } = open();
  db.execute('CREATE TABLE others (n)');
  ask();
  const before = reads();
  db.run('INSERT INTO others VALUES (1)');
  ask();
  expect(reads()).toBe(before);
});

test('where the database can’t be asked, all who ask without a pause are told, and those after them ask anew', async () => {
  const { ask, db } = open();
  expect(ask()).toBe(1);
  const asked = vi.spyOn(db, 'othersVersion', 'get');
  db.close();
  for (const times of [1, 2]) {
    await pause();
    for (const _ of ['one', 'another']) expect(ask).toThrow(expect.objectContaining({ code: 'store_unavailable' }));
    expect(asked).toHaveBeenCalledTimes(times);
  }
});
