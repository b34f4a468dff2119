import { describe, expect, test } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import type { Platform } from '../../src/ports/index.ts';
import { codeOf, expectError, messageOf, rankBody } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type Answer, openTestApp, place, roles, type TestApp } from '../support/open-test-app.ts';
import { holdWrites, platformWith } from '../support/platform-with.ts';
import { rawAnswers } from '../support/raw-answers.ts';
import { asIfKilled } from '../support/store-of-app.ts';

function rank(app: TestApp, key: string, rest: Record<string, unknown> = {}, idempotencyKey = 'one'): Promise<Answer> {
  return app.rank(key, rest, { headers: { 'idempotency-key': idempotencyKey } });
}

const isReplayed = ({ headers }: Answer) => headers['idempotent-replayed'] === 'true';

/** Expects `repeat` to equal `first`, except for the request id and the header that marks a replay. */
function expectReplay(repeat: Answer, first: Answer): void {
  expect([isReplayed(first), isReplayed(repeat)]).toEqual([false, true]);
  expect({ ...Object(repeat.json), requestId: '' }).toEqual({ ...Object(first.json), requestId: '' });
  expect(repeat.status).toBe(first.status);
  expect(repeat.headers['x-rank-change']).toBe(first.headers['x-rank-change']);
}

test('a repeat gets the first outcome again, and no change is made twice', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const first = await rank(app, key);
  expect((await rank(app, key, { newRankId: 50 }, 'two')).status).toBe(200);
  expectReplay(await rank(app, key), first);
  expect(await app.heldBy(1001)).toContain(roles.captain);
  expect(await app.store.listChanges({ limit: 10 })).toHaveLength(2);
});

test('a repeat may write the same content differently', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  await rank(app, key);
  const reordered = Object.fromEntries(Object.entries(rankBody({ newRankId: '20', unknown: 1 })).reverse());
  const headers = { 'idempotency-key': 'one', 'content-type': 'text/plain' };
  expect(isReplayed(await app.post(`/v1/ranker/?placeId=${place}`, { key, headers, body: reordered }))).toBe(true);
});

test('a name that was cut inside a character is the same in the response, the history and the replay', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const first = await rank(app, key, { rankeeName: 'Bob \ud83d' });
  expect(messageOf(first)).toContain('Bob \ufffd (1001)');
  expectReplay(await rank(app, key, { rankeeName: 'Bob \ud83d' }), first);
  expect(await app.store.listChanges({ limit: 1 })).toMatchObject([
    { rankeeName: 'Bob \ufffd', message: messageOf(first).replace(' (simulated group)', '') },
  ]);
});

test('a repeat may have different names, because a game knows only the names of players on its server', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const first = await rank(app, key, { rankeeName: 'Sam', rankerName: 'Ann' });
  expectReplay(await rank(app, key, { rankeeName: '', rankerName: '' }), first);
  const v2 = (body: object) =>
    app.post(`/v2/promote?placeid=${place}`, {
      key,
      body: { robloxUserId: 1002, ...body },
      headers: { 'idempotency-key': 'two' },
    });
  const promoted = await v2({ rankeeName: 'Ann' });
  expectReplay(await v2({}), promoted);
});

const longCommand = 'x'.repeat(500);

test.each([{ newRankId: 50 }, { rankeeId: 1002 }, { rankerId: 5 }, { command: `${longCommand}b` }])(
  'a different change under the same idempotency key is a mismatch: %j',
  async (rest) => {
    await using app = await openTestApp();
    const key = await app.createKey();
    await rank(app, key, { command: `${longCommand}a` });
    expectError(await rank(app, key, { command: `${longCommand}a`, ...rest }), {
      status: 422,
      code: 'idempotency_mismatch',
      error: 'Idempotency key reused',
    });
  },
);

test('a repeat is answered at once, even while another change of the member is in flight', async () => {
  const { promise: open, resolve: release } = Promise.withResolvers<void>();
  let isHeld = false;
  const held = (group: Platform) => {
    const getMember: Platform['getMember'] = async (userId, call) => {
      if (isHeld) await open;
      return group.getMember(userId, call);
    };
    return platformWith(group, { getMember });
  };
  await using app = await openTestApp({ platform: held });
  const key = await app.createKey();
  const first = await rank(app, key);
  isHeld = true;
  const underWay = Array.from({ length: 10 }, (_, index) => rank(app, key, { newRankId: 50 }, `other ${index}`));
  await expect.poll(() => app.app.requests.count).toBe(10);
  expectReplay(await rank(app, key), first);
  release();
  await Promise.all(underWay);
});

test('the same change from another place of the game is a repeat, because Roblox reports a purchase again there', async () => {
  await using app = await openTestApp();
  const key = await app.createKey({ places: [place, 43], scopes: ['rank', 'suspend'] });
  for (const [path, body] of [
    ['v1/ranker', rankBody()],
    ['v2/rank', { robloxUserId: 1001, rank: 50 }],
    ['v2/promote', { robloxUserId: 1002 }],
    ['v2/suspend', { robloxUserId: 1001, duration: 3600 }],
    ['v2/unsuspend', { robloxUserId: 1001 }],
  ] as const) {
    const ask = (placeId: number) =>
      app.post(`/${path}?placeid=${placeId}`, { key, headers: { 'idempotency-key': path }, body });
    const first = await ask(place);
    expect(first.status, path).toBe(200);
    expectReplay(await ask(43), first);
  }
});

test('each game key has separate idempotency keys, even while one is in use', async () => {
  const { platform, begun, release } = holdWrites();
  await using app = await openTestApp({ platform });
  const [one, other] = [await app.createKey(), await app.createKey({ name: 'other' })];
  const running = rank(app, one);
  await begun;
  const second = await rank(app, other, { rankeeId: 1008 });
  expect([second.status, isReplayed(second)]).toEqual([200, false]);
  release();
  expect(isReplayed(await running)).toBe(false);
});

test('a repeat while the first is in flight is reported as in progress, and a different change as a mismatch', async () => {
  const { platform, begun, release } = holdWrites();
  await using app = await openTestApp({ platform });
  const key = await app.createKey();
  const first = rank(app, key);
  await begun;
  const inProgress = { status: 409, code: 'idempotency_in_progress', error: 'Still in progress', waits: true };
  expectError(await rank(app, key), inProgress);
  expect(codeOf(await rank(app, key, { newRankId: 50 }))).toBe('idempotency_mismatch');
  release();
  expect((await first).status).toBe(200);
  expect(isReplayed(await rank(app, key))).toBe(true);
});

test('of two identical simultaneous requests, one runs, and the other is reported as in progress', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  const body = JSON.stringify(rankBody());
  const request = (connection: string) =>
    `POST /v1/ranker?placeid=${place} HTTP/1.1\r\nhost: rankd\r\nauthorization: Bearer ${key}\r\nidempotency-key: one\r\n` +
    `content-length: ${body.length}\r\nconnection: ${connection}\r\n\r\n${body}`;
  const answers = await rawAnswers(app.url, request('keep-alive') + request('close'));
  expect(answers.map((answer) => [answer.status, codeOf(answer)])).toEqual([
    [200, undefined],
    [409, 'idempotency_in_progress'],
  ]);
});

test('a repeat after a crash is reported as in progress until the change is reconciled', async () => {
  const { platform, begun, release } = holdWrites();
  await using app = await openTestApp({ platform });
  const key = await app.createKey();
  const first = rank(app, key);
  await begun;
  const dataDir = asIfKilled(app.dataDir);
  const down = () => Promise.reject(new RankdError('platform_unavailable', 'Down.'));
  await using next = await openTestApp({ dataDir, platform: (group) => platformWith(group, { getMember: down }) });
  const repeat = await rank(next, key);
  expect([repeat.status, codeOf(repeat), isReplayed(repeat)]).toEqual([409, 'idempotency_in_progress', false]);
  release();
  await first;
});

describe('of outcomes other than success,', () => {
  test('a refusal is replayed, even if its reason no longer applies', async () => {
    await using app = await openTestApp();
    const key = await app.createKey();
    app.app.policy.protectedMembers.push(1001);
    const first = await rank(app, key);
    expect(codeOf(first)).toBe('member_protected');
    app.app.policy.protectedMembers.pop();
    expectReplay(await rank(app, key), first);
    expect((await rank(app, key, {}, 'two')).status).toBe(200);
  });

  test('a refusal by the platform is replayed', async () => {
    const { platform, refuse } = refusing(new RankdError('platform_rejected', 'Roblox says no.'));
    await using app = await openTestApp({ platform });
    const key = await app.createKey();
    const first = await rank(app, key);
    refuse(undefined);
    expectReplay(await rank(app, key), first);
  });

  test.each(['platform_unavailable', 'platform_busy'] as const)(
    '%s is not stored, and a repeat tries again',
    async (code) => {
      const { platform, refuse } = refusing(new RankdError(code, 'Not now.'));
      await using app = await openTestApp({ platform });
      const key = await app.createKey();
      expect((await rank(app, key)).status).toBe(503);
      refuse(undefined);
      const second = await rank(app, key);
      expect([second.status, isReplayed(second)]).toEqual([200, false]);
    },
  );

  test('a request that never became a change is not replayed', async () => {
    await using app = await openTestApp();
    const key = await app.createKey();
    expect(codeOf(await rank(app, key, { rankeeId: 'x' }))).toBe('invalid_request');
    expect((await rank(app, key)).status).toBe(200);
  });

  /** Makes every role assignment fail with the error, until `refuse` replaces or clears it. */
  function refusing(first: RankdError) {
    let error: RankdError | undefined = first;
    const refuse = (next: RankdError | undefined) => {
      error = next;
    };
    const platform = (group: Platform) =>
      platformWith(group, {
        assignRole: (change, call) => (error === undefined ? group.assignRole(change, call) : Promise.reject(error)),
      });
    return { platform, refuse };
  }
});

test.each([true, false])(
  'an unknown outcome is replaced once the change is reconciled (applied: %j)',
  async (isApplied) => {
    const clock = new ManualClock();
    let isDown = false;
    const { promise: sent, resolve: send } = Promise.withResolvers<void>();
    const platform = (group: Platform) =>
      platformWith(group, {
        assignRole: async (change, call) => {
          isDown = true;
          if (isApplied) await group.assignRole(change, call);
          send();
          throw new RankdError('outcome_unknown', 'The connection broke.');
        },
        getMember: async (userId, call) => {
          if (isDown) throw new RankdError('platform_unavailable', 'Down.');
          return group.getMember(userId, call);
        },
      });
    await using app = await openTestApp({ clock, platform });
    const key = await app.createKey();
    const waiting = rank(app, key);
    await sent;
    await clock.advance(20_000);
    const first = await waiting;
    expectError(first, { status: 504, code: 'outcome_unknown', error: 'Outcome unknown' });
    expect([(await rank(app, key)).status, (await rank(app, key)).status]).toEqual([504, 504]);

    isDown = false;
    const state = async () => {
      await clock.advance(2_000); // in small steps, because the clock does not wait for the disk
      return (await app.store.findChange(String(first.headers['x-rank-change'])))?.state;
    };
    await expect.poll(state).toBe(isApplied ? 'applied' : 'failed');
    if (!isApplied) return;
    const repeat = await rank(app, key);
    expect([repeat.status, isReplayed(repeat)]).toEqual([200, true]);
  },
);

test('an outcome is replayed for 24 hours, even after a restart', async () => {
  const clock = new ManualClock();
  const start = clock.now();
  const first = await openTestApp({ clock });
  const key = await first.createKey();
  const answer = await rank(first, key);
  await first.stop();

  await using second = await openTestApp({ clock, dataDir: first.dataDir });
  clock.setWallClock(start + 24 * 3_600_000);
  expectReplay(await rank(second, key), answer);
  clock.setWallClock(start + 24 * 3_600_000 + 1);
  const late = await rank(second, key, { newRankId: 50 });
  expect([late.status, isReplayed(late)]).toEqual([200, false]);
});

test.each([
  [128, 200],
  [129, 400],
  [0, 200],
])('a request with an idempotency key of %i characters is answered with %i', async (length, status) => {
  await using app = await openTestApp();
  const answer = await rank(app, await app.createKey(), {}, 'x'.repeat(length));
  expect(answer.status).toBe(status);
  if (status === 400) expect(messageOf(answer)).toContain('at most 128 characters');
});
