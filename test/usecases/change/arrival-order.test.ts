import { gzipSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import { openRanking } from '../../../src/app.ts';
import { deadlineIn, systemClock } from '../../../src/base/clock.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { createPlatform } from '../../../src/platforms/create-platform.ts';
import type { Clock, Platform } from '../../../src/ports/index.ts';
import { changeRank } from '../../../src/usecases/change/change-rank.ts';
import { QueuePosition } from '../../../src/usecases/change/queue-position.ts';
import { messageOf, rankBody } from '../../support/answers.ts';
import { openTestApp, place, roles } from '../../support/open-test-app.ts';
import { platformWith } from '../../support/platform-with.ts';
import { rawAnswers } from '../../support/raw-answers.ts';
import { storeOf } from '../../support/store-of-app.ts';

const member = 1001;
const { base, trainee, officer, captain } = roles;

test('a change from the shell waits for earlier changes from the daemon, and later ones wait for it', async () => {
  const written: number[] = [];
  const allAsked = Promise.withResolvers<void>();
  const shellClock = new CountingClock();
  await using daemon = await openTestApp({
    platform: (group) =>
      platformWith(recording(group, written, allAsked.promise), {
        getMember: async (userId, call) => {
          // Lets the shell try to overtake between the first change and the second.
          const seen = shellClock.sleeps;
          while (written.length === 1 && shellClock.sleeps < seen + 2) await systemClock.sleep(5);
          return group.getMember(userId, call);
        },
      }),
  });
  const key = await daemon.createKey();
  const rank = (newRankId: number) => daemon.rank(key, { rankeeId: member, newRankId });
  const loaded = loadConfig({ flags: { 'platform.kind': 'simulated' }, env: {}, cwd: daemon.dataDir });
  const config = { ...loaded.config, ...(await storeOf(daemon.dataDir)) };
  const group = await createPlatform({
    config: config.platform,
    dataDir: daemon.dataDir,
    clock: systemClock,
    store: daemon.store,
  });
  await using shell = await openRanking({
    config,
    dataDir: daemon.dataDir,
    overrides: { platform: recording(group, written, allAsked.promise), clock: shellClock },
  });
  // After the second change, the shell checks its position only once the third change is waiting.
  const daemonQueueReads = vi.spyOn(daemon.store, 'queueState');
  const isThirdWaiting = () =>
    daemonQueueReads.mock.settledResults.filter(({ value }) => value?.isNext === false).length > 1;
  shellClock.mayWake = () => written.length < 2 || isThirdWaiting();

  const untilQueueLength = (count: number) => {
    const position = async () => (await shell.store.queueState({ rankeeId: member })).position;
    return expect.poll(position, { interval: 5 }).toBe(String(count + 1));
  };

  // Requests ranks 20 and 10 through the daemon, then 50 through the shell, then 20 and 10 through the daemon again.
  const first = rank(20);
  await expect.poll(() => written.length, { interval: 5 }).toBe(1);
  const second = rank(10);
  await untilQueueLength(1);
  const fromShell = changeFromShell(shell, 50);
  await untilQueueLength(2);
  const third = rank(20);
  await untilQueueLength(3);
  const fourth = rank(10);
  await untilQueueLength(4);
  allAsked.resolve();
  const answers = await Promise.all([first, second, third, fourth]);

  expect((await fromShell).change.state).toBe('applied');
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(written).toEqual([officer, trainee, captain, officer, trainee]);
  await group.close();
});

test('a change to the current rank is planned again if a different node changes the member in the meantime', async () => {
  const read = Promise.withResolvers<void>();
  const changed = Promise.withResolvers<void>();
  await using daemon = await openTestApp({
    platform: (group) =>
      platformWith(group, {
        getMember: async (userId, call) => {
          const seen = await group.getMember(userId, call);
          if (userId !== member) return seen;
          read.resolve();
          await changed.promise;
          return seen;
        },
      }),
  });
  const answer = daemon.rank(await daemon.createKey(), { rankeeId: member, newRankId: 10 });
  await read.promise;
  const loaded = loadConfig({ flags: { 'platform.kind': 'simulated' }, env: {}, cwd: daemon.dataDir });
  const config = { ...loaded.config, ...(await storeOf(daemon.dataDir)) };
  await using shell = await openRanking({ config, dataDir: daemon.dataDir });
  expect((await changeFromShell(shell, 50)).change.state).toBe('applied');
  changed.resolve();
  expect((await answer).status).toBe(200);
  expect(await daemon.store.listChanges({ limit: 9 })).toMatchObject([{ newRankId: 10 }, { newRankId: 50 }]);
  expect(await daemon.heldBy(member)).toEqual([trainee, base]);
});

async function changeFromShell(shell: Awaited<ReturnType<typeof openRanking>>, newRankId: number) {
  using deadline = deadlineIn(shell.clock, shell.deadlineMs);
  const request = { rankeeId: member, rankeeName: '', rankerId: 0, rankerName: 'operator', newRankId };
  return changeRank(shell, { caller: { by: 'cli:ann@host', dryRun: false }, request }, deadline);
}

/** The real clock, but it counts sleeps, and ends a sleep only once `mayWake` returns true. */
class CountingClock implements Clock {
  sleeps = 0;
  mayWake = () => true;
  readonly now = systemClock.now;
  readonly monotonic = systemClock.monotonic;

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeps += 1;
    do await systemClock.sleep(ms, signal);
    while (!this.mayWake());
  }
}

/** Records the assigned roles in order, and delays each assignment until `begin` resolves. */
function recording(group: Platform, written: number[], begin: Promise<void>): Platform {
  return platformWith(group, {
    assignRole: async (change, call) => {
      written.push(change.roleId);
      await begin;
      return group.assignRole(change, call);
    },
  });
}

test.each([
  ['with an Idempotency-Key', { 'idempotency-key': 'one' }, (json: string) => Buffer.from(json)],
  ['that is compressed', { 'content-encoding': 'gzip' }, gzipSync],
])('a request %s is not overtaken by a plain one sent after it', async (_how, headers, pack) => {
  await using daemon = await openTestApp();
  const key = await daemon.createKey();
  const request = (newRankId: number, more = {}, packed: (json: string) => Buffer = (json) => Buffer.from(json)) => {
    const body = packed(JSON.stringify(rankBody({ newRankId })));
    const lines = { host: 'x', authorization: `Bearer ${key}`, 'content-length': Buffer.byteLength(body), ...more };
    const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
    return Buffer.concat([Buffer.from(`POST /v1/ranker?placeid=${place} HTTP/1.1\r\n${head.join('')}\r\n`), body]);
  };
  const asked = [request(50, headers, pack), request(10, { connection: 'close' })];
  const [first, second] = await rawAnswers(daemon.url, Buffer.concat(asked));
  expect(first && messageOf(first)).toMatch(/is now .*\(rank 50\)/);
  expect(second && messageOf(second)).toMatch(/is now .*\(rank 10\), was .*\(rank 50\)/);
});

test('the first changes of two nodes do not wait for each other, even if later changes joined the queue first', async () => {
  await using daemon = await openTestApp();
  const loaded = loadConfig({ flags: { 'platform.kind': 'simulated' }, env: {}, cwd: daemon.dataDir });
  const config = { ...loaded.config, ...(await storeOf(daemon.dataDir)) };
  await using shell = await openRanking({ config, dataDir: daemon.dataDir });
  const arrivals = [daemon.app, daemon.app, shell, shell].map(
    (node) => new QueuePosition(node, { rankeeId: member, lane: 'all' }),
  );
  const joined = async () => (await shell.store.queueState({ rankeeId: member })).position;
  await expect.poll(joined, { interval: 5 }).toBe('3');
  using deadline = deadlineIn(systemClock, 5_000);
  const call = { signal: deadline.signal, deadlineAt: Number.POSITIVE_INFINITY, lane: 'all' };
  const through = arrivals.map(async (position) => {
    await position.waitForTurn(call);
    await position[Symbol.asyncDispose]();
  });
  await Promise.all(through);
});
