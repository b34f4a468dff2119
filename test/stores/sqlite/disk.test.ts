import fs, {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Connection } from '../../../src/stores/sqlite/engine/connection.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { begin, newChange, newKey, operate, operator } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestApp, send } from '../../support/open-test-app.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { commitsIn } from './support.ts';

const eio = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });

/** The real disk, but that it can be stopped, and fail. */
const disk = {
  isStopped: false,
  error: null as Error | null,
  waiting: [] as Array<() => void>,
  /** The files that were written through, by their numbers in the file system, and how large each was. */
  synced: [] as Array<{ file: number; size: number }>,
};

beforeEach(() => {
  Object.assign(disk, { isStopped: false, error: null, waiting: [], synced: [] });
  const { fdatasync } = fs;
  replaceFdatasync((descriptor, done) => {
    const { ino: file, size } = fs.fstatSync(descriptor);
    disk.synced.push({ file, size });
    const go = () => (disk.error === null ? fdatasync(descriptor, done) : done(disk.error));
    if (disk.isStopped) disk.waiting.push(go);
    else go();
  });
  onTestFinished(() => replaceFdatasync(fdatasync));
});

function replaceFdatasync(fdatasync: (descriptor: number, done: fs.NoParamCallback) => void): void {
  Object.assign(fs, { fdatasync });
  syncBuiltinESMExports();
}

function goOn(): void {
  disk.isStopped = false;
  for (const go of disk.waiting.splice(0)) go();
}

async function open() {
  const dataDir = tempDir();
  const openAgain = ({ isServed = true } = {}) => openSqliteStore({ dataDir, clock: new ManualClock(), isServed });
  const store = await openAgain();
  onTestFinished(() => store.close());
  return { store, openAgain, file: join(dataDir, 'rankd.db') };
}

/** True where it has ended after many turns of the event loop. */
async function hasEnded(work: Promise<unknown>): Promise<boolean> {
  let isEnded = false;
  const end = () => {
    isEnded = true;
  };
  work.then(end, end);
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
  return isEnded;
}

test('a write is told as done once the log that holds it is on the disk, and not before', async () => {
  const { store, file } = await open();
  disk.isStopped = true;
  const written = begin(store, newChange(), { after: undefined });
  expect(await hasEnded(written)).toBe(false);
  const log = statSync(`${file}-wal`);
  expect(disk.synced).toEqual([{ file: log.ino, size: log.size }]);
  goOn();
  expect(await written).toBe(true);
});

test('what comes while the disk is waited for is committed together, and waits for it once more', async () => {
  const { store, file } = await open();
  disk.isStopped = true;
  const event = (subject: string) => operate({ store }).appendAudit({ by: operator, action: 'a', subject, detail: {} });
  const first = event('first');
  await hasEnded(first);
  const before = commitsIn(file);
  const others = Promise.all([event('second'), event('third')]);
  await hasEnded(others);
  expect(commitsIn(file) - before).toBe(0);
  goOn();
  await Promise.all([first, others]);
  expect(commitsIn(file) - before).toBe(1);
  expect(disk.synced.at(-1)?.size).toBe(statSync(`${file}-wal`).size);
  expect(disk.synced).toHaveLength(2);
});

test('where one of what is written together is refused, the others wait for the disk all the same', async () => {
  const { store } = await open();
  await operate({ store }).createKey(newKey('main'), operator);
  const three = () => [
    operate({ store }).createKey(newKey('main', { id: 'key_twin' }), operator),
    operate({ store }).appendAudit({ by: operator, action: 'a', subject: 's', detail: {} }),
    begin(store, newChange({ keyId: 'key_other' }), { after: undefined }),
  ];
  disk.isStopped = true;
  const written = three();
  for (const one of written.slice(1)) expect(await hasEnded(one)).toBe(false);
  goOn();
  const outcomes = await Promise.allSettled(written);
  expect(outcomes).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled' }, { status: 'fulfilled' }]);
  disk.error = eio;
  const codes = await Promise.all(three().map((one) => one.then(String, ({ code }) => code)));
  expect(codes).toEqual(['already_exists', 'store_unavailable', 'store_unavailable']);
});

test('once the disk has failed, nothing is told and nothing written until the store is opened anew', async () => {
  const { store, openAgain, file } = await open();
  await operate({ store }).createKey(newKey('main'), operator);
  disk.error = eio;
  const failed = {
    name: 'RankdError',
    code: 'store_unavailable',
    message: expect.not.stringContaining('/'),
    hint: expect.stringContaining('start rankd again'),
    cause: eio,
  };
  const change = newChange();
  await expect(begin(store, change, { after: undefined })).rejects.toMatchObject(failed);
  disk.error = null; // the system tells of it once
  const commits = commitsIn(file);
  await expect(store.findChange(change.id)).rejects.toMatchObject(failed);
  await expect(operate({ store }).createKey(newKey('other'), operator)).rejects.toMatchObject(failed);
  await expect(store.ping()).rejects.toMatchObject(failed);
  expect(commitsIn(file)).toBe(commits);
  await store.close();

  const again = await openAgain();
  onTestFinished(() => again.close());
  await again.ping();
  expect(await operate({ store: again }).createKey(newKey('other'), operator)).toMatchObject({ name: 'other' });
});

test.each([
  ['the next daemon', true],
  ['a command', false],
])('what %s keeps after a failure of the disk does not stand behind what was lost then', async (_, isServed) => {
  const { openAgain, file, size } = await openAfterLoss();
  const again = await openAgain({ isServed });
  onTestFinished(() => again.close());
  await operate({ store: again }).createKey(newKey('kept'), operator);
  expect(await keysAfterPowerCut(file, size)).toContain('kept');
});

test('nor where somebody was reading just then, once they have ended', async () => {
  const { openAgain, file, size } = await openAfterLoss();
  const reader = new Database(file);
  onTestFinished(() => void reader.close());
  reader.exec('BEGIN; SELECT 1 FROM keys');
  const again = await openAgain();
  onTestFinished(() => again.close());
  await operate({ store: again }).createKey(newKey('kept'), operator);
  reader.exec('COMMIT');
  await operate({ store: again }).createKey(newKey('another'), operator);
  expect(await keysAfterPowerCut(file, size)).toEqual(expect.arrayContaining(['kept', 'another']));
});

/** A store whose disk failed at the second of two writes. `size`: of the log, up to where the disk has it. */
async function openAfterLoss() {
  const { store, openAgain, file } = await open();
  await operate({ store }).createKey(newKey('main'), operator);
  const { size } = statSync(`${file}-wal`);
  disk.error = eio;
  await expect(operate({ store }).createKey(newKey('lost'), operator)).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  disk.error = null;
  return { openAgain, file, size };
}

/** The names of the keys on the disk once all of the log behind `size` is lost. */
async function keysAfterPowerCut(file: string, size: number): Promise<string[]> {
  const image = tempDir();
  copyFileSync(file, join(image, 'rankd.db'));
  writeFileSync(join(image, 'rankd.db-wal'), readFileSync(`${file}-wal`).fill(0, size));
  const store = await openSqliteStore({ dataDir: image, clock: new ManualClock() });
  onTestFinished(() => store.close());
  return (await store.listKeys()).map(({ name }) => name);
}

test('closing waits for the disk where something is still written', async () => {
  const { store } = await open();
  disk.isStopped = true;
  const written = begin(store, newChange(), { after: undefined });
  await vi.waitUntil(() => disk.waiting.length === 1, { timeout: 20_000 });
  await store.close();
  goOn();
  expect(await written).toBe(true);
});

test('where the disk fails at the outcome of a change, the change is unknown and no other begins', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const rank = (rankeeId: number) => app.rank(key, { rankeeId }, { headers: { 'idempotency-key': `of ${rankeeId}` } });
  disk.isStopped = true;
  const answer = rank(1001);
  await vi.waitUntil(() => disk.waiting.length === 1, { timeout: 20_000 });
  for (const go of disk.waiting.splice(0)) go(); // the intent is on the disk
  await vi.waitUntil(() => disk.waiting.length === 1, { timeout: 20_000 });
  disk.error = eio;
  goOn();
  expect(await answer).toMatchObject({ status: 504, json: { code: 'outcome_unknown' } });
  disk.error = null;
  expect(await rank(1003)).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
  expect(await rank(1001)).toMatchObject({ status: 503 }); // a repeat of it is not told of success
});

test('a daemon whose disk has failed lives and is not ready', async () => {
  await using app = await openTestApp();
  const status = async (path: string) => (await send(app.url + path, {})).status;
  expect(await status('/readyz')).toBe(200);
  disk.error = eio;
  await expect(app.createKey()).rejects.toMatchObject({ code: 'store_unavailable' });
  disk.error = null;
  expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 503]);
});

test('a disk that does not answer holds up changes, but not the verification of keys', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const verify = () => app.verify(key);
  const before = await verify();
  disk.isStopped = true;
  const answer = app.rank(key);
  await vi.waitUntil(() => disk.waiting.length === 1, { timeout: 20_000 });
  expect(await verify()).toMatchObject({ status: 200, json: before.json });
  expect(await hasEnded(answer)).toBe(false);
  goOn();
  expect(await answer).toMatchObject({ status: 200, json: { success: true } });
});

test('a write that nothing would wait for is refused', async () => {
  const { store, file } = await open();
  await operate({ store }).createKey(newKey('main'), operator);
  const db = new Connection(file);
  onTestFinished(() => db.close());
  db.syncOffThread();
  expect(() => db.run("UPDATE keys SET name = 'x'")).toThrow(TypeError);
  expect(() => db.execute("UPDATE keys SET name = 'x'")).toThrow(TypeError);
  expect(() => db.writeSync(() => db.run("UPDATE keys SET name = 'x'"))).toThrow(TypeError);
  expect(await db.write(() => db.run("UPDATE keys SET name = 'x'"))).toBe(1);
  expect(db.get('PRAGMA synchronous')).toEqual({ synchronous: 1 }); // the log's beginning and its checkpoints are SQLite's to sync
});

/** Ways to damage a daemon's file, each with a function that does it. */
const harms: Array<[string, (file: string) => void]> = [
  ['removed', (file) => rmSync(file)],
  [
    'replaced',
    (file) => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
  ],
  ['emptied', (file) => truncateSync(file)],
  ['cut', (file) => truncateSync(file, statSync(file).size - 1)],
];
const parts = ['rankd.db', 'rankd.db-wal', 'rankd.db-shm'];
const harmedParts = parts.flatMap((part) => harms.map(([what, harm]) => [part, what, harm] as const));
const theseFiles = { code: 'store_unavailable', message: expect.stringContaining('removed or replaced, or cut') };

test.each(harmedParts)('nothing is written any more, nor read, once %s is %s', async (part, _what, harm) => {
  const { store, file } = await open();
  await operate({ store }).createKey(newKey('main'), operator);
  await store.ping();
  harm(join(dirname(file), part));
  await expect(operate({ store }).createKey(newKey('lost'), operator)).rejects.toMatchObject(theseFiles);
  await expect(store.ping()).rejects.toMatchObject(theseFiles);
  await expect(store.findKey('main')).rejects.toMatchObject(theseFiles);
});

test('a log that is emptied in the middle of a commit is noticed before anybody is told', async () => {
  const { openAgain, file } = await open();
  const store = await openAgain();
  onTestFinished(() => store.close());
  await operate({ store }).createKey(newKey('main'), operator);
  const judge = () => {
    truncateSync(`${file}-wal`);
    return { change: { id: 'ws_1', name: 'x', plan: 'top' as const, active: true, createdAt: 0 }, events: [] };
  };
  await expect(store.updateWorkspace(judge)).rejects.toMatchObject(theseFiles);
});

test('a command that commits into files that are no longer in their place is not told that it is done', async () => {
  const { openAgain, file } = await open();
  const command = await openAgain({ isServed: false });
  onTestFinished(() => command.close());
  await operate({ store: command }).createKey(newKey('main'), operator);
  rmSync(`${file}-shm`);
  await expect(operate({ store: command }).createKey(newKey('lost'), operator)).rejects.toMatchObject(theseFiles);
});

/** A file of a daemon by its name, or by what its name looks like. */
const namedParts: Array<[string, RegExp, number]> = [
  ['rankd.db', /^rankd\.db$/, 4],
  ['rankd.db-wal', /^rankd\.db-wal$/, 4],
  ['rankd.db-shm', /^rankd\.db-shm$/, 2], // cutting it also removes its pages from memory, which may end the process at once
  ['the lock of the daemon', /^daemon\.lock$/, 2], // the locks are empty files
  ['the lock of its node', /^node_\w+\.lock$/, 2],
];

test.each(
  namedParts.flatMap(([name, pattern, count]) =>
    harms.slice(0, count).map(([what, harm]) => ({ name, what, pattern, harm })),
  ),
)('every request is refused from the next one on once $name is $what', async ({ pattern, harm }) => {
  await using app = await openTestApp();
  const key = await app.createKey();
  expect((await app.verify(key)).status).toBe(200);
  expect((await app.rank(key)).status).toBe(200);
  const name = readdirSync(app.dataDir).find((one) => pattern.test(one)) ?? '';
  harm(join(app.dataDir, name));
  for (const answer of [await app.verify(key), await app.rank(key), await app.verify(key)])
    expect(answer).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
  expect((await send(`${app.url}/readyz`, {})).status).toBe(503);
});
