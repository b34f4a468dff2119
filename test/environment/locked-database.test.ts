import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectError } from '../support/answers.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { send } from '../support/open-test-app.ts';
import { CliHome } from '../support/run-cli.ts';

/** Another process keeps the write lock of the database: a backup tool, a person with the sqlite3 shell. */
let home: CliHome;
let daemon: DaemonProcess;
let secret: string;
let other: Database.Database;
beforeEach(async () => {
  home = new CliHome();
  daemon = await DaemonProcess.start(home);
  secret = await home.createKey();
  other = new Database(join(home.dataDir, 'rankd.db'));
});
afterEach(async () => {
  other.close();
  await daemon[Symbol.asyncDispose]();
  home[Symbol.dispose]();
});

const changeRank = (rankeeId: number) => daemon.rank(secret, { rankeeId });

test('held for long: changes must wait, all other requests are answered at once, and service resumes', async () => {
  other.exec('BEGIN EXCLUSIVE');
  const asked = [1001, 1002, 1003, 1004].map(changeRank);
  const slowest = slowestAnswer(Promise.all(asked));
  const verified = await daemon.verify(secret);
  expect(verified.status).toBe(200);
  for (const answer of await Promise.all(asked)) {
    expectError(answer, { status: 503, code: 'store_unavailable', error: 'Store unavailable', waits: true });
  }
  expect(await slowest).toBeLessThan(1_000);
  // a lock does not mean that the disk refuses writes
  expect((await send(`${daemon.url}/readyz`, {})).status).toBe(200);

  other.exec('ROLLBACK');
  expect((await changeRank(1001)).status).toBe(200);
  const { changes } = await home.json<{ changes: unknown[] }>('history', 'list');
  expect(changes).toMatchObject([{ rankeeId: 1001, state: 'applied' }]);
});

test('held for a moment: the daemon and the commands next to it wait until it is free', async () => {
  other.exec('BEGIN IMMEDIATE');
  const asked = [1001, 1003].map(changeRank);
  const made = home.run(['key', 'create', 'beside']);
  await new Promise((resolve) => setTimeout(resolve, 600));
  other.exec('COMMIT');
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
  expect((await made).code).toBe(0);
});

/** The longest response time of /healthz in the meantime, in milliseconds. */
async function slowestAnswer(meanwhile: Promise<unknown>): Promise<number> {
  let isOver = false;
  void meanwhile.finally(() => {
    isOver = true;
  });
  let slowestMs = 0;
  while (!isOver) {
    const from = performance.now();
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
    slowestMs = Math.max(slowestMs, performance.now() - from);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return slowestMs;
}
