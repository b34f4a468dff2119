import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { RankdError } from '../../src/base/errors.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { begin, newChange } from '../contracts/store/samples.ts';
import { expectError } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type Answer, openTestApp, roles, type TestApp } from '../support/open-test-app.ts';
import { holdWrites, platformWith } from '../support/platform-with.ts';

/** In these tests, an administrator or NTP sets the clock of a running daemon. */
const hourMs = 3_600_000;
const { trainee, officer } = roles;
const open: TestApp[] = [];
let clock: ManualClock;
beforeEach(() => {
  clock = new ManualClock();
});
afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
});

async function start(options: Parameters<typeof openTestApp>[0] = {}): Promise<TestApp> {
  const app = await openTestApp({ ...options, clock });
  open.push(app);
  return app;
}

const setClockBy = (ms: number) => clock.setWallClock(clock.now() + ms);

async function withTime(asked: Promise<Answer>): Promise<Answer> {
  let isAnswered = false;
  void asked.finally(() => {
    isAnswered = true;
  });
  while (!isAnswered) {
    await clock.advance(50);
    await delay(1); // real time, for work on the disk
  }
  return asked;
}

async function statesAfter(ms: number, { app }: TestApp): Promise<string[]> {
  await clock.advance(ms);
  return (await app.store.listChanges({ limit: 9 })).map(({ state }) => state);
}

describe.each([
  ['forward', hourMs],
  ['back', -hourMs],
])('if the clock is set an hour %s', (_way, jumpMs) => {
  test('during a change, the change is answered and stored once, and the next one begins at once', async () => {
    const { platform, begun, release } = holdWrites();
    const app = await start({ platform });
    const key = await app.createKey();
    const first = app.rank(key);
    await begun;
    setClockBy(jumpMs);
    await clock.advance(3_000); // long enough for the check for abandoned changes
    release();
    expect((await first).status).toBe(200);
    const second = await app.rank(key, { newRankId: 10 });
    expect(second.status).toBe(200);
    expect(await app.store.listChanges({ limit: 9 })).toMatchObject([{ state: 'applied' }, { state: 'applied' }]);
  });

  test('while an outcome is unknown, the change is reconciled as soon as the platform responds', async () => {
    let isDown = false;
    const down = () => new RankdError('platform_unavailable', 'The platform is down.');
    const app = await start({
      platform: (group) =>
        platformWith(group, {
          getMember: async (userId, call) => {
            if (isDown) throw down();
            return group.getMember(userId, call);
          },
          unassignRole: async (change, call) => {
            await group.unassignRole(change, call);
            isDown = true;
            throw new RankdError('outcome_unknown', 'The answer was lost.');
          },
        }),
    });
    const key = await app.createKey();
    const unknown = await withTime(app.rank(key));
    expectError(unknown, { status: 504, code: 'outcome_unknown', error: 'Outcome unknown' });
    setClockBy(jumpMs);
    await clock.advance(5_000);
    expect(await app.store.listChanges({ limit: 9 })).toMatchObject([{ state: 'unknown' }]);
    isDown = false;
    await expect.poll(() => statesAfter(1_000, app)).toEqual(['applied']);
  });

  test('after a command was killed in the middle of a change, the change is still reconciled', async () => {
    const app = await start();
    const roles = { rolesBefore: [trainee], rolesAfter: [officer] };
    const { keyId: _none, ...byGame } = newChange({ rankeeId: 1001, ...roles, requestedAt: clock.now() });
    const change = { ...byGame, by: 'cli:ann@host' };
    const command = await engineOf({ dataDir: app.dataDir, clock }).openStore();
    expect(await begin(command, change)).toBe(true);
    await command.close(); // has the same effect as a kill
    setClockBy(jumpMs);
    await expect.poll(() => statesAfter(1_000, app)).not.toContain('pending');
  });

  test('while a response is stored for its idempotency key, a repeat gets it again, and no change is made twice', async () => {
    let writes = 0;
    const app = await start({
      platform: (group) =>
        platformWith(group, {
          assignRole: async (change, call) => {
            writes += 1;
            return group.assignRole(change, call);
          },
        }),
    });
    const key = await app.createKey();
    const once = { headers: { 'idempotency-key': 'once' } };
    const first = await app.rank(key, {}, once);
    setClockBy(jumpMs);
    const again = await app.rank(key, {}, once);
    expect(again).toMatchObject({ status: 200, json: first.json, headers: { 'idempotent-replayed': 'true' } });
    expect(writes).toBe(1);
    expect((await app.rank(key, { newRankId: 10 }, once)).status).toBe(422);
  });

  test('between two changes of a member, a read that lags behind the first is ignored', async () => {
    const lagMs = 6_750;
    let shown: { roleIds: number[]; until: number } | undefined;
    const app = await start({
      platform: (group) =>
        platformWith(group, {
          readLagMs: 8_000,
          getMember: async (userId, call) => {
            const member = await group.getMember(userId, call);
            const isLagging = shown !== undefined && clock.monotonic() < shown.until;
            return member && isLagging ? { ...member, roleIds: shown?.roleIds ?? [] } : member;
          },
          assignRole: async (change, call) => {
            const before = await group.getMember(change.userId, call);
            shown = { roleIds: before?.roleIds ?? [], until: clock.monotonic() + lagMs };
            return group.assignRole(change, call);
          },
        }),
    });
    const key = await app.createKey();
    expect((await withTime(app.rank(key))).status).toBe(200);
    setClockBy(jumpMs);
    const back = await withTime(app.rank(key, { newRankId: 10 }));
    expect(back).toMatchObject({ status: 200, json: { message: expect.stringContaining('is now Trainee') } });
  });

  test('during a cooldown, no caller waits an hour for its end', async () => {
    const app = await start({ config: { policy: { cooldowns: [{ from: 0, forMs: 60_000 }] } } });
    const key = await app.createKey();
    expect((await app.rank(key)).status).toBe(200);
    const tooSoon = await app.rank(key, { newRankId: 10 });
    expectError(tooSoon, { status: 429, code: 'cooldown', error: 'Cooldown active', waits: true });
    setClockBy(jumpMs);
    expect((await app.rank(key, { newRankId: 10 })).status).toBe(200);
  });

  test('between two changes of a member, the cooldown of the second one still applies', async () => {
    const app = await start({ config: { policy: { cooldowns: [{ from: 0, forMs: 60_000 }] } } });
    const key = await app.createKey();
    const rank = async (newRankId: number) => (await app.rank(key, { newRankId })).status;
    expect(await rank(20)).toBe(200);
    setClockBy(jumpMs);
    expect([await rank(10), await rank(20)]).toEqual([200, 429]);
    await clock.advance(59_000);
    expect(await rank(20)).toBe(429);
    await clock.advance(1_000);
    expect(await rank(20)).toBe(200);
  });

  test('while requests are counted and timed, limits and deadlines use durations', async () => {
    const app = await start({ config: { limits: { verifyPerMinute: 2 } } });
    const key = await app.createKey();
    const verify = () => app.verify(key);
    expect([(await verify()).status, (await verify()).status]).toEqual([200, 200]);
    setClockBy(jumpMs);
    const limited = await verify();
    expect(limited.status).toBe(429);
    expect(Number(limited.headers['retry-after'])).toBeLessThanOrEqual(60);
    await clock.advance(30_000);
    expect((await verify()).status).toBe(200);
  });
});

test('a key expires by the wall clock, and is accepted again once the clock is corrected', async () => {
  const app = await start();
  const key = await app.createKey({ expiresAt: clock.now() + hourMs / 2 });
  const verify = async () => (await app.verify(key)).status;
  expect(await verify()).toBe(200);
  setClockBy(hourMs);
  expect(await verify()).toBe(401);
  setClockBy(-hourMs);
  expect(await verify()).toBe(200);
  setClockBy(-hourMs);
  expect(await verify()).toBe(200);
});

test.each([hourMs, -hourMs])('durations do not change when the system clock is set by %d ms', (jumpMs) => {
  const [time, duration] = [systemClock.now(), systemClock.monotonic()];
  vi.spyOn(Date, 'now').mockReturnValue(time + jumpMs);
  expect(systemClock.now()).toBe(time + jumpMs);
  expect(Math.abs(systemClock.monotonic() - duration)).toBeLessThan(hourMs / 2);
  vi.restoreAllMocks();
});
