import { once } from 'node:events';
import type http from 'node:http';
import { describe, expect, test } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import { loadConfig } from '../../src/config/load.ts';
import { LiveConfig } from '../../src/daemon/live-config.ts';
import type { Platform } from '../../src/ports/index.ts';
import { finish } from '../contracts/store/samples.ts';
import { codeOf, messageOf, rankBody } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, place, roles } from '../support/open-test-app.ts';
import { holdReads, holdWrites, platformWith } from '../support/platform-with.ts';
import { startPost } from '../support/send.ts';

test('the response to a change has exactly four fields, and is sent once the member holds the rank', async () => {
  await using app = await openTestApp();
  const answer = await app.rank(await app.createKey());
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual({
    success: true,
    message: 'Bob (1001) is now Officer (rank 20), was Trainee (rank 10). (simulated group)',
    rankeeId: 1001,
    newRankId: 20,
  });
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer.headers['ratelimit-policy']).toBe('"rank";q=300;w=30');
  expect(await app.heldBy(1001)).toEqual([roles.officer, roles.base]);
});

test('the X-Rank-Change header has the id of the change in the history', async () => {
  await using app = await openTestApp();
  const answer = await app.rank(await app.createKey());
  const stored = await app.store.findChange(String(answer.headers['x-rank-change']));
  const keyId = (await app.store.findKey('main'))?.id;
  expect(stored).toMatchObject({ state: 'applied', rankeeId: 1001, keyId, placeId: place, by: `key:${keyId}` });
});

test('a refused change is also in the history, and its response has the id', async () => {
  await using app = await openTestApp();
  const answer = await app.rank(await app.createKey(), { newRankId: 21 });
  const stored = await app.store.findChange(String(answer.headers['x-rank-change']));
  expect(stored).toMatchObject({ state: 'refused', code: 'unknown_rank' });
  expect(messageOf(answer)).toBe(`${stored?.message} (simulated group)`);
});

test('a rank can be given by its role id, and ids may need more than 32 bits', async () => {
  await using app = await openTestApp();
  const answer = await app.rank(await app.createKey(), { rankeeId: '8589935601', newRankId: '8589934642' });
  expect(answer.json).toMatchObject({ success: true, rankeeId: 8_589_935_601, newRankId: roles.captain });
  expect(await app.heldBy(8_589_935_601)).toEqual([roles.captain, roles.base]);
});

test('a lower role stays when the highest one is replaced', async () => {
  await using app = await openTestApp();
  await app.rank(await app.createKey(), { rankeeId: 1003, newRankId: 20 });
  expect(await app.heldBy(1003)).toEqual([roles.trainee, roles.officer, roles.base]);
});

test("a change to the base role's id takes all other roles", async () => {
  await using app = await openTestApp();
  expect((await app.rank(await app.createKey(), { newRankId: roles.base })).status).toBe(200);
  expect(await app.heldBy(1001)).toEqual([roles.base]);
});

test('a change to the current rank gets 200 without a write', async () => {
  const mustNot = () => Promise.reject(new Error('a write'));
  const readOnly = (group: Platform) => platformWith(group, { assignRole: mustNot, unassignRole: mustNot });
  await using app = await openTestApp({ platform: readOnly });
  const answer = await app.rank(await app.createKey(), { newRankId: 10 });
  expect(answer.json).toMatchObject({
    success: true,
    message: 'Bob (1001) is already Trainee (rank 10). (simulated group)',
  });
});

test('a test key gets the outcome of a real change, marked as a test, and changes nothing', async () => {
  await using app = await openTestApp();
  const key = await app.createKey({ mode: 'test' });
  const [yes, no] = [await app.rank(key), await app.rank(key, { newRankId: 0 })];
  expect(yes.status).toBe(200);
  expect(messageOf(yes)).toBe(
    'Test key, nothing changed: Bob (1001) is now Officer (rank 20), was Trainee (rank 10). (simulated group)',
  );
  expect([no.status, codeOf(no)]).toEqual([403, 'rank_not_allowed']);
  expect(messageOf(no)).toMatch(/^Test key, nothing changed: /);
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
  const changes = await app.store.listChanges({ limit: 10 });
  expect(changes.map(({ state, dryRun }) => [state, dryRun])).toEqual([
    ['refused', true],
    ['applied', true],
  ]);
});

test('a change that the platform accepts but does not make is not reported as success', async () => {
  const withoutEffect = (group: Platform) =>
    platformWith(group, { assignRole: async ({ userId }) => ({ userId, roleIds: [roles.trainee] }) });
  await using app = await openTestApp({ platform: withoutEffect });
  const answer = await app.rank(await app.createKey());
  expect([answer.status, codeOf(answer)]).toEqual([502, 'platform_credential']);
});

test("the deadline counts from the arrival of the request headers, regardless of the daemon's uptime", async () => {
  const clock = new ManualClock();
  await clock.advance(600_000);
  const asked = Promise.withResolvers<number>();
  await using app = await openTestApp({
    clock,
    platform: (group) =>
      platformWith(group, {
        getMember: async (userId, call) => {
          asked.resolve(call.deadlineAt);
          return group.getMember(userId, call);
        },
      }),
  });
  const arrivedAt = clock.monotonic();
  const request = startPost(`${app.url}/v1/ranker?placeid=${place}`, await app.createKey());
  request.flushHeaders();
  await expect.poll(() => app.app.requests.count).toBe(1);
  await clock.advance(5_000);
  request.end(JSON.stringify(rankBody()));
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.resume();
  expect(await asked.promise).toBe(arrivedAt + 20_000);
});

describe('while a change is under way', () => {
  test('other members can be ranked, and changes of the same member wait in order of arrival', async () => {
    const { platform, begun, release } = holdWrites();
    await using app = await openTestApp({ platform });
    const key = await app.createKey();
    const first = app.rank(key, { newRankId: 20 });
    await begun;
    const second = app.rank(key, { newRankId: 50 });
    expect((await app.rank(key, { rankeeId: 1008 })).status).toBe(200);
    release();
    expect(messageOf(await first)).toBe(
      'Bob (1001) is now Officer (rank 20), was Trainee (rank 10). (simulated group)',
    );
    expect(messageOf(await second)).toBe(
      'Bob (1001) is now Captain (rank 50), was Officer (rank 20). (simulated group)',
    );
  });

  test('a change that a different node gave up, but that was applied, is reported as applied and corrected in the history', async () => {
    const { platform, begun, release } = holdWrites({ userId: 1004 });
    await using app = await openTestApp({ platform });
    const answer = app.rank(await app.createKey(), { rankeeId: 1004 });
    await begun;
    const { latestId = '' } = await app.store.latestChange(1004);
    const givenUp = { state: 'failed', code: 'platform_rejected', message: 'It was given up.' } as const;
    await finish(app.app, latestId, givenUp);
    release();
    const { status, headers } = await answer;
    expect(status).toBe(200);
    const [correction, given] = await app.store.listChanges({ limit: 9 });
    expect(given).toMatchObject({ id: latestId, ...givenUp });
    expect(correction).toMatchObject({
      id: headers['x-rank-change'],
      state: 'applied',
      message: expect.stringContaining(`after change ${latestId} had been recorded as not applied`),
      rolesAfter: await app.heldBy(1004),
    });
  });

  test('a reload does not change the rules that apply to it', async () => {
    const { platform, begun, release } = holdReads();
    await using app = await openTestApp({ platform });
    const key = await app.createKey();
    const underWay = app.rank(key);
    await begun;
    const load = async (flags: Record<string, string>) =>
      loadConfig({ flags: { 'platform.kind': 'simulated', ...flags }, env: {}, cwd: app.dataDir });
    const live = new LiveConfig({
      app: app.live,
      started: await load({}),
      load: () => load({ 'policy.max_rank': '10' }),
      onApplied: async () => [],
    });
    expect(await live.reload('daemon')).toMatchObject({ state: 'applied' });
    release();
    expect((await underWay).status).toBe(200);
    expect(codeOf(await app.rank(key, { rankeeId: 1008 }))).toBe('rank_not_allowed');
  });

  test('invalid data after its request does not replace its response', async () => {
    const { platform, begun, release } = holdWrites();
    await using app = await openTestApp({ platform });
    const key = await app.createKey();
    const body = JSON.stringify(rankBody());
    const answer = app.rank(
      key,
      {},
      {
        body: `${body}what is this`,
        headers: { 'content-length': String(body.length) },
      },
    );
    await begun;
    release();
    expect(await answer).toMatchObject({ status: 200, json: { success: true }, headers: { connection: 'close' } });
  });

  test('a caller that disconnects does not stop it', async () => {
    const { platform, begun, release } = holdWrites();
    await using app = await openTestApp({ platform });
    const headers = { authorization: `Bearer ${await app.createKey()}` };
    const caller = new AbortController();
    const url = `${app.url}/v1/ranker?placeid=${place}`;
    const call = fetch(url, { method: 'POST', headers, body: JSON.stringify(rankBody()), signal: caller.signal });
    await begun;
    caller.abort();
    await expect(call).rejects.toThrow();
    release();
    await app.stop();
    expect(app.app.requests.count).toBe(0);
    expect(app.logLines.join('')).toContain('"path":"/v1/ranker","status":200');
  });
});

test('every change in a burst for many members succeeds', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const members = [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 8_589_935_601];
  const answers = await Promise.all(
    [10, 20, 50].flatMap((newRankId) => members.map((rankeeId) => app.rank(key, { rankeeId, newRankId }))),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(await app.heldBy(1007)).toEqual([roles.captain, roles.base].sort((a, b) => a - b));
});

test('if the platform is too busy for the write, the error has the retry time, and nothing is changed', async () => {
  const busy = new RankdError('platform_busy', 'No room.', { retryAfterMs: 2_400 });
  await using app = await openTestApp({
    platform: (group) => platformWith(group, { assignRole: () => Promise.reject(busy) }),
  });
  const answer = await app.rank(await app.createKey());
  expect([answer.status, codeOf(answer), answer.headers['retry-after']]).toEqual([503, 'platform_busy', '3']);
  expect(answer.json).toMatchObject({ retryAfter: 3 });
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
});
