import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectError } from '../support/answers.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { send } from '../support/open-test-app.ts';
import { CliHome } from '../support/run-cli.ts';

/** In these tests, another process, such as a backup tool or the sqlite3 shell, holds the database's write lock. */
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

test('while another process locks the database for long, only changes wait, and service resumes afterwards', async () => {
  other.exec('BEGIN EXCLUSIVE');
  const asked = [1001, 1002, 1003, 1004].map(changeRank);
  let isOneAnswered = false;
  void Promise.race(asked).then(() => {
    isOneAnswered = true;
  });
  expect((await daemon.verify(secret)).status).toBe(200);
  for (let others = 0; others < 10; others += 1) {
    await delay(50);
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  }
  expect(isOneAnswered).toBe(false);
  for (const answer of await Promise.all(asked)) {
    expectError(answer, { status: 503, code: 'store_unavailable', error: 'Store unavailable', waits: true });
  }
  // rankd stays ready, because a lock does not mean that the disk refuses writes
  expect((await send(`${daemon.url}/readyz`, {})).status).toBe(200);

  other.exec('ROLLBACK');
  expect((await changeRank(1001)).status).toBe(200);
  const { changes } = await home.json<{ changes: unknown[] }>('history', 'list');
  expect(changes).toMatchObject([{ rankeeId: 1001, state: 'applied' }]);
});

test('while another process locks the database briefly, the daemon and commands wait until it is free', async () => {
  other.exec('BEGIN IMMEDIATE');
  const asked = [1001, 1003].map(changeRank);
  const made = home.run(['key', 'create', 'beside']);
  await delay(600);
  other.exec('COMMIT');
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
  expect((await made).code).toBe(0);
});
