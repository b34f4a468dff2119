import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { openRanking } from '../../src/app.ts';
import { deadlineIn, systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createPlatform } from '../../src/platforms/create-platform.ts';
import type { Platform } from '../../src/ports.ts';
import { changeRank } from '../../src/usecases/change-rank.ts';
import { messageOf, rankBody } from '../support/answers.ts';
import { openTestApp, place } from '../support/open-test-app.ts';
import { platformWith } from '../support/platform-with.ts';
import { rawAnswers } from '../support/raw-answers.ts';

const member = 1001;

test('a change from the shell takes its turn among those of the daemon: earlier ones first, later ones after', async () => {
  const written: number[] = [];
  const allAsked = Promise.withResolvers<void>();
  await using daemon = await openTestApp({ platform: (group) => noting(group, written, allAsked.promise) });
  const key = await daemon.createKey();
  const rank = (newRankId: number) =>
    daemon.post(`/v1/ranker?placeid=${place}`, {
      key,
      body: { rankerName: 'A', rankerId: 0, rankeeName: 'B', rankeeId: member, newRankId },
    });
  const { config } = loadConfig({ flags: { 'platform.kind': 'simulated' }, env: {}, cwd: daemon.dataDir });
  const group = await createPlatform({ config: config.platform, dataDir: daemon.dataDir, clock: systemClock });
  await using shell = await openRanking({
    config,
    dataDir: daemon.dataDir,
    overrides: { platform: noting(group, written, allAsked.promise) },
  });

  // By role: 20 and 10 arrive at the daemon, then 50 at the shell, then 20 and 10 at the daemon again.
  const first = rank(20);
  await expect.poll(() => written.length).toBe(1);
  const second = rank(10);
  await expect.poll(() => daemon.app.inFlight).toBe(2);
  const fromShell = changeFromShell(shell, 50);
  await expect.poll(async () => (await shell.store.lookAhead({ rankeeId: member, holder: '' })).place > 2).toBe(true);
  const third = rank(20);
  await expect.poll(() => daemon.app.inFlight).toBe(3);
  const fourth = rank(10);
  await expect.poll(() => daemon.app.inFlight).toBe(4);
  allAsked.resolve();
  const answers = await Promise.all([first, second, third, fourth]);

  expect((await fromShell).change.state).toBe('applied');
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(written).toEqual([70020, 70010, 8589934642, 70020, 70010]);
  await group.close();
});

async function changeFromShell(shell: Awaited<ReturnType<typeof openRanking>>, newRankId: number) {
  using deadline = deadlineIn(shell.clock, shell.deadlineMs);
  const request = { rankeeId: member, rankeeName: '', rankerId: 0, rankerName: 'operator', newRankId };
  return changeRank(shell, { caller: { by: 'cli:ann@host', dryRun: false }, request }, deadline);
}

/** A group that notes the roles given in order, and gives none before `begin`. */
function noting(group: Platform, written: number[], begin: Promise<void>): Platform {
  return platformWith(group, {
    assignRole: async (change, call) => {
      written.push(change.roleId);
      await begin;
      return group.assignRole(change, call);
    },
  });
}

test.each([
  ['with an Idempotency-Key', { 'idempotency-key': 'one' }, (json: string) => json],
  ['packed', { 'content-encoding': 'gzip' }, gzipSync],
])('a request that comes %s is not overtaken by a plain one that arrives behind it', async (_how, headers, pack) => {
  await using daemon = await openTestApp();
  const key = await daemon.createKey();
  const request = (newRankId: number, more = {}, packed: (json: string) => string | Buffer = (json) => json) => {
    const body = packed(JSON.stringify(rankBody({ newRankId })));
    const lines = { host: 'x', authorization: `Bearer ${key}`, 'content-length': Buffer.byteLength(body), ...more };
    const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
    return Buffer.concat([
      Buffer.from(`POST /v1/ranker?placeid=${place} HTTP/1.1\r\n${head.join('')}\r\n`),
      Buffer.from(body),
    ]);
  };
  const asked = [request(50, headers, pack), request(10, { connection: 'close' })];
  const [first, second] = await rawAnswers(daemon.url, Buffer.concat(asked));
  expect(first && messageOf(first)).toMatch(/is now .*\(rank 50\)/);
  expect(second && messageOf(second)).toMatch(/is now .*\(rank 10\), was .*\(rank 50\)/);
});
