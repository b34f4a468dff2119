import { copyFileSync, readdirSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { newKey, operate, operator } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestApp, send } from '../../support/open-test-app.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { commitsIn } from './support.ts';

async function open() {
  const dataDir = tempDir();
  const openAgain = ({ isServed = true } = {}) => openSqliteStore({ dataDir, clock: new ManualClock(), isServed });
  const store = await openAgain();
  onTestFinished(() => store.close());
  const event = (subject: string) => operate({ store }).appendAudit({ by: operator, action: 'a', subject, detail: {} });
  return { store, openAgain, event, file: join(dataDir, 'rankd.db') };
}

/** Makes each insert into a table take a few tenths of a second. */
function slowDown(file: string, table: string): void {
  const database = new Sqlite(file);
  database.exec(`
    CREATE TABLE numbers AS SELECT value FROM json_each('[${Array.from({ length: 200 }, (_, n) => n).join()}]');
    CREATE TRIGGER slow AFTER INSERT ON ${table}
      BEGIN SELECT count(*) FROM numbers AS a, numbers AS b, numbers AS c WHERE a.value + b.value + c.value < 0; END`);
  database.close();
}

/** Makes all elapsed time count either as waiting for the disk or as CPU time. */
function countAllTimeAs(kind: 'wait' | 'work'): void {
  const cpuTime = vi
    .spyOn(process, 'cpuUsage')
    .mockImplementation(() => ({ user: kind === 'wait' ? 0 : performance.now() * 1_000, system: 0 }));
  onTestFinished(() => cpuTime.mockRestore());
}

test('writes that arrive while a commit waits for the disk are committed together', async () => {
  const { event, file } = await open();
  await event('none');
  slowDown(file, 'audit_events');
  countAllTimeAs('wait');
  for (const slow of ['one', 'two']) await event(slow); // after two slow commits, further ones run in a thread
  const before = commitsIn(file);
  const first = event('first');
  await new Promise((resolve) => setTimeout(resolve, 50)); // lets the commit of the first event begin
  await Promise.all([first, event('second'), event('third')]);
  expect(commitsIn(file) - before).toBe(2);
});

test('a slow disk delays changes but, from the third one on, no key verifications', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const { json } = await app.verify(key);
  slowDown(join(app.dataDir, 'rankd.db'), 'rank_changes');
  countAllTimeAs('wait');
  for (const rankeeId of [1003, 1004]) await app.rank(key, { rankeeId });
  let isAnswered = false;
  const answer = app.rank(key).finally(() => {
    isAnswered = true;
  });
  let verified = 0;
  while (!isAnswered && verified < 1_000) {
    expect(await app.verify(key)).toMatchObject({ status: 200, json });
    verified += 1;
  }
  expect(verified).toBeGreaterThan(3); // would be fewer if verifications waited for the insert
  expect(await answer).toMatchObject({ status: 200, json: { success: true } });
});

test('CPU time does not count as disk latency: slow work moves no write to a thread', async () => {
  const { event, file } = await open();
  await event('none');
  slowDown(file, 'audit_events');
  countAllTimeAs('work');
  for (const slow of ['one', 'two']) await event(slow);
  let isWritten = false;
  const written = event('three').finally(() => {
    isWritten = true;
  });
  let turns = 0;
  for (; !isWritten; turns += 1) await new Promise(setImmediate);
  expect(turns).toBeLessThan(20); // would be hundreds if a thread ran the write
  await written;
});

test('closing waits for pending writes', async () => {
  const { store, openAgain } = await open();
  const written = operate({ store }).createKey(newKey('main'), operator);
  await store.close();
  expect(await written).toMatchObject({ name: 'main' });
  const again = await openAgain();
  onTestFinished(() => again.close());
  expect(await again.listKeys()).toMatchObject([{ name: 'main' }]);
});

const damages: Array<[string, (file: string) => void]> = [
  ['removed', (file) => rmSync(file)],
  [
    'replaced',
    (file) => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
  ],
  ['emptied', (file) => truncateSync(file)],
  ['truncated', (file) => truncateSync(file, statSync(file).size - 1)],
];
const parts = ['rankd.db', 'rankd.db-wal', 'rankd.db-shm'];
const damagedParts = parts.flatMap((part) => damages.map(([what, damage]) => [part, what, damage] as const));
const damagedFiles = { code: 'store_unavailable', message: expect.stringContaining('removed, replaced or truncated') };

test.each(damagedParts)('reads and writes fail once %s is %s', async (part, _what, damage) => {
  const { store, file } = await open();
  await operate({ store }).createKey(newKey('main'), operator);
  await store.ping();
  damage(join(dirname(file), part));
  await expect(operate({ store }).createKey(newKey('lost'), operator)).rejects.toMatchObject(damagedFiles);
  await expect(store.ping()).rejects.toMatchObject(damagedFiles);
  await expect(store.findKey('main')).rejects.toMatchObject(damagedFiles);
});

test('a log that is emptied in the middle of a commit is detected before any caller gets a response', async () => {
  const { openAgain, file } = await open();
  const store = await openAgain();
  onTestFinished(() => store.close());
  await operate({ store }).createKey(newKey('main'), operator);
  const judge = () => {
    truncateSync(`${file}-wal`);
    return { change: { id: 'ws_1', name: 'x', plan: 'top' as const, active: true, createdAt: 0 }, events: [] };
  };
  await expect(store.updateWorkspace(judge)).rejects.toMatchObject(damagedFiles);
});

test('a command that commits into replaced or removed files does not report success', async () => {
  const { openAgain, file } = await open();
  const command = await openAgain({ isServed: false });
  onTestFinished(() => command.close());
  await operate({ store: command }).createKey(newKey('main'), operator);
  rmSync(`${file}-shm`);
  await expect(operate({ store: command }).createKey(newKey('lost'), operator)).rejects.toMatchObject(damagedFiles);
});

/** A daemon's files, each with how many of the first `damages` to test on it. */
const namedParts: Array<[string, RegExp, number]> = [
  ['rankd.db', /^rankd\.db$/, 4],
  ['rankd.db-wal', /^rankd\.db-wal$/, 4],
  ['rankd.db-shm', /^rankd\.db-shm$/, 2], // truncating a memory-mapped file can kill the process
  ["the daemon's lock", /^daemon\.lock$/, 2], // a lock file is empty, so it can't be truncated
  ["its node's lock", /^node_\w+\.lock$/, 2],
];

test.each(
  namedParts.flatMap(([name, pattern, count]) =>
    damages.slice(0, count).map(([what, damage]) => ({ name, what, pattern, damage })),
  ),
)('every request is refused once $name is $what', async ({ pattern, damage }) => {
  await using app = await openTestApp();
  const key = await app.createKey();
  expect((await app.verify(key)).status).toBe(200);
  expect((await app.rank(key)).status).toBe(200);
  const name = readdirSync(app.dataDir).find((one) => pattern.test(one)) ?? '';
  damage(join(app.dataDir, name));
  for (const answer of [await app.verify(key), await app.rank(key), await app.verify(key)])
    expect(answer).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
  expect((await send(`${app.url}/readyz`, {})).status).toBe(503);
});
