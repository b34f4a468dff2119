import { once } from 'node:events';
import type http from 'node:http';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { defaultTuning } from '../../src/platforms/upstream/client.ts';
import type { Clock } from '../../src/ports/index.ts';
import { createDiscordKey } from '../../src/usecases/keys/keys.ts';
import { codeOf, expectError, rankBody } from '../support/answers.ts';
import { discordConfig } from '../support/discord-interactions.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { documentedLimits } from '../support/fake-open-cloud/budgets.ts';
import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type OpenCloudApp, onOpenCloud, openCloudAppOn, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { send, startPost } from '../support/send.ts';

const { trainee: bob, officer: eve, traineeAndCaptain: veteran, otherAdmin: ranker } = sampleUsers;
const { base, trainee, officer, captain } = sampleRoles;
const busy = { status: 503, code: 'platform_busy', error: 'Roblox busy', waits: true };
const aboveActing = { status: 403, code: 'above_acting_account', error: 'Above the acting account' };

function addMembers({ fake }: Pick<OpenCloudApp, 'fake'>, count: number): number[] {
  const members = Array.from({ length: count }, (_, index) => 20_000 + index);
  for (const userId of members) fake.group.setMember(userId, [trainee]);
  return members;
}

/** Uses up all but `count` calls of the unassign budget. */
async function leaveUnassigns(count: number, { fake, rank }: OpenCloudApp): Promise<void> {
  fake.budgets.use('unassign', 299 - count);
  await rank(eve, { newRankId: 10 }); // the responses report the budget
}

async function timed({ clock }: Pick<OpenCloudApp<Clock>, 'clock'>, asked: () => ReturnType<OpenCloudApp['rank']>) {
  const begunAt = clock.monotonic();
  const answer = await asked();
  const { retryAfter = 0 } = answer.json as { retryAfter?: number };
  return { answer, retryAfterMs: retryAfter * 1000, tookMs: clock.monotonic() - begunAt };
}

const smallLimit = 7;
const statuses = ({ fake }: OpenCloudApp) => new Set(fake.journal.entries.map(({ status }) => status));

describe('a change that cannot start before its deadline', () => {
  test.each(['memberships', 'assign', 'unassign'] as const)(
    'because the budget for %s is used up is refused at once, nothing is written, and the reported wait is correct',
    (operation) =>
      onOpenCloud(
        async (system) => {
          const { fake, clock } = system;
          fake.budgets.use(operation, 299);
          await system.rank(eve, { newRankId: 10 }); // the responses report that no calls are left
          const [carol = 0] = addMembers(system, 1);
          fake.expectNoWrites(carol);
          const first = await timed(system, () => system.rank(carol));
          expectError(first.answer, busy);
          expect(first.tookMs).toBeLessThan(1_000);
          expect(fake.violations()).toEqual([]);
          expect(await system.changeOf(first.answer)).toMatchObject({ state: 'failed', code: 'platform_busy' });
          expect(first.retryAfterMs).toBeGreaterThan(50_000);
          expect(first.retryAfterMs).toBeLessThanOrEqual(60_000);

          clock.skip(first.retryAfterMs - 25_000);
          expectError(await system.rank(carol), busy);
          clock.skip(25_000);
          expect((await system.rank(bob)).status).toBe(200);
          expect(statuses(system)).toEqual(new Set([200]));
        },
        { deadlineMs: 20_000 },
      )(),
  );

  test('because the budget covers only one of two roles to take is refused before the first is taken', () =>
    onOpenCloud(
      async (system) => {
        await leaveUnassigns(1, system);
        system.fake.expectNoWrites(veteran);
        const { answer, tookMs } = await timed(system, () => system.rank(veteran, { newRankId: base }));
        expectError(answer, busy);
        expect(tookMs).toBeLessThan(1_000);
        expect(system.fake.group.held(veteran)).toEqual([captain, trainee]);
      },
      { deadlineMs: 20_000 },
    )());

  test('is refused before it begins if changes in progress need the rest of the budget, and those are completed', () =>
    onOpenCloud(async (system) => {
      const { app, fake } = system;
      const members = addMembers(system, 5);
      await leaveUnassigns(1, system);
      const all = await Promise.all(members.map((userId) => system.rank(userId)));
      const [done, ...refused] = all.toSorted((a, b) => a.status - b.status);
      expect(done?.status).toBe(200);
      for (const answer of refused) expectError(answer, busy);
      for (const [index, userId] of members.entries()) {
        const isDone = all[index] === done;
        expect(fake.group.held(userId)).toEqual([isDone ? officer : trainee]);
        expect(fake.journal.writes(userId)).toHaveLength(isDone ? 2 : 0);
      }
      expect(await app.store.openChanges()).toEqual([]);
    })());

  test('releases its reservation for other changes', () =>
    onOpenCloud(
      async (system) => {
        const { fake } = system;
        const [carol = 0, dave = 0] = addMembers(system, 2);
        await leaveUnassigns(1, system);
        expectError(await system.rank(veteran, { newRankId: base }), busy);
        fake.faults.add({ operation: 'assign', kind: 'status 403' });
        expect((await system.rank(carol)).status).not.toBe(200);
        expect((await system.rank(dave)).status).toBe(200);
      },
      { deadlineMs: 20_000 },
    )());

  test('is refused at once even if it is already waiting when the platform asks for a longer pause', () =>
    onOpenCloud(
      async (system) => {
        const { fake } = system;
        const members = addMembers(system, 5);
        fake.faults.add({ operation: 'memberships', kind: 'status 429', headers: { 'retry-after': '45' } });
        const all = await Promise.all(members.map((userId) => timed(system, () => system.rank(userId))));
        const refused = all.filter(({ answer }) => answer.status !== 200);
        expect(refused.length).toBeGreaterThan(0);
        for (const { answer, tookMs, retryAfterMs } of refused) {
          expectError(answer, busy);
          expect(tookMs).toBeLessThan(2_000);
          expect(retryAfterMs).toBeGreaterThanOrEqual(44_000);
        }
      },
      { deadlineMs: 20_000 },
    )());
});

test('a change can start if the budget covers exactly the two roles to take', () =>
  onOpenCloud(
    async (system) => {
      await leaveUnassigns(2, system);
      expect((await system.rank(veteran, { newRankId: base })).status).toBe(200);
      expect(system.fake.group.held(veteran)).toEqual([]);
    },
    { deadlineMs: 20_000 },
  )());

test('a change that would end too late at Roblox’s current speed does not begin', () =>
  onOpenCloud(
    async (system) => {
      const { fake } = system;
      fake.latencyMs = 150;
      const members = addMembers(system, 8);
      // teaches rankd the response time
      for (const userId of members) expect((await system.rank(userId)).status).toBe(200);
      fake.expectNoWrites(bob);
      // Together with the latency of 150 ms, this leaves 300 ms for the writes.
      fake.faults.add({ operation: 'memberships', kind: 'slow', userId: bob, delayMs: 1_550 });
      const late = await system.rank(bob);
      expect([late.status, codeOf(late)]).toEqual([503, 'platform_unavailable']);
      expect(fake.violations()).toEqual([]);
    },
    { deadlineMs: 2_000, tuning: { perTryTimeoutMs: 5_000 } },
  )());

test('a member is not read for a change that has too little time left', () =>
  onOpenCloud(
    async (system) => {
      const { fake, clock } = system;
      fake.latencyMs = 150;
      for (const userId of addMembers(system, 8)) expect((await system.rank(userId)).status).toBe(200);
      clock.skip(31_000); // the roles must be read again first
      fake.faults.add({ operation: 'roles', kind: 'slow', delayMs: 1_400 });
      const late = await system.rank(bob);
      expect([late.status, codeOf(late)]).toEqual([503, 'platform_unavailable']);
      expect(fake.journal.requests('memberships').filter(({ userId }) => userId === bob)).toEqual([]);
    },
    { deadlineMs: 2_000, tuning: { perTryTimeoutMs: 5_000 } },
  )());

describe('a change is refused at once, as busy, if after a pause there is time', () => {
  test.each([
    ['to read its member, but not to confirm its role again', 20_800, bob, {}],
    ['to read its ranker, but not for its writes', 20_300, ranker, { rankerCheck: 'verify' } as const],
  ])('%s', async (_, deadlineMs, userId, policy) => {
    const clock = new ManualClock();
    const options = { deadlineMs, policy, fake: { latencyMs: 300 }, tuning: defaultTuning };
    await using system = await clock.passUntil(openCloudAppOn(clock, options));
    const rank = (robloxUserId: number) => {
      const body = { robloxUserId, rank: 20, rankerId: ranker };
      return send(`${system.url}/v2/rank?placeid=1`, { method: 'POST', key: system.secret, body });
    };
    for (const member of addMembers(system, 8)) await clock.passUntil(rank(member)); // teaches rankd the response time
    system.fake.faults.add({ operation: 'memberships', kind: 'status 429', userId, headers: { 'retry-after': '18' } });
    const { answer, tookMs } = await clock.passUntil(timed(system, () => rank(bob)));
    expectError(answer, busy);
    expect(tookMs).toBeLessThan(2_000);
  });
});

describe('a change that has waited for the slots of its writes', () => {
  async function openWithoutSlots() {
    const clock = new ManualClock();
    const system = await clock.passUntil(openCloudAppOn(clock, { deadlineMs: 20_000, tuning: defaultTuning }));
    system.fake.budgets.use('assign', 299);
    await clock.passUntil(system.rank(eve, { newRankId: 10 })); // the response reports that no calls are left
    await clock.advance(43_000); // the next window begins in 17 s
    system.fake.expectNoWrites(bob);
    return system;
  }

  test.each([
    ['its role got another rank', officer, 25, { status: 400, code: 'unknown_rank', error: 'Unknown rank' }],
    ["the member's role rose above the acting account", trainee, 220, aboveActing],
  ])('is refused if %s in the meantime', async (_, roleId, rank, refusal) => {
    await using system = await openWithoutSlots();
    const { clock, fake } = system;
    const asked = system.rank(bob);
    await clock.advance(5_000);
    expect(fake.journal.requests('memberships').filter(({ userId }) => userId === bob)).toHaveLength(1);
    fake.group.roles = fake.group.roles.map((role) => (role.id === roleId ? { ...role, rank } : role));
    expectError(await clock.passUntil(asked), refusal);
    expect(fake.violations()).toEqual([]);
  });

  test('does not begin if the roles arrive too late, even if another change has read them', async () => {
    await using system = await openWithoutSlots();
    const { clock, fake } = system;
    const asked = system.rank(bob);
    await clock.advance(15_500);
    fake.faults.add({ operation: 'roles', kind: 'slow', delayMs: 4_000 });
    const other = system.rank(20_001); // not a member, but the first change joins its read of the roles
    expectError(await clock.passUntil(asked), busy);
    await clock.passUntil(other);
    expect(await system.app.store.openChanges()).toEqual([]);
    expect(fake.violations()).toEqual([]);
  });
});

test('the deadline of a request counts from its arrival, however slow its body is, and a late one is refused for lack of time', () =>
  onOpenCloud(async (system) => {
    const { app, url, secret, clock, fake, logLines } = system;
    const request = startPost(`${url}/v1/ranker?placeid=1`, secret);
    const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
    const body = JSON.stringify(rankBody({ rankeeId: bob }));
    request.write(body.slice(0, 10));
    await expect.poll(() => app.requests.count, { interval: 1 }).toBe(1);
    clock.skip(20_000);
    request.end(body.slice(10));
    const [response] = await answered;
    const { code, message } = JSON.parse(await text(response));
    expect([response.statusCode, code]).toEqual([503, 'platform_unavailable']);
    expect(message).toMatch(/no time .* nothing was sent/);
    expect(fake.journal.writes()).toEqual([]);
    await expect.poll(() => logLines.some((line) => /"status":503,"ms":2\d{4},/.test(line))).toBe(true);
  })());

describe('the pause that the platform asks for', () => {
  test.each([
    ['seconds', () => '30'],
    ['a date', ({ clock }: OpenCloudApp) => new Date(clock.now() + 30_500).toUTCString()],
  ])('in %s is reported to the caller if it is longer than the deadline', (_form, header) =>
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.faults.add({ operation: 'assign', kind: 'status 429', headers: { 'retry-after': header(system) } });
      const { answer, retryAfterMs } = await timed(system, () => system.rank(bob));
      expectError(answer, busy);
      expect(retryAfterMs).toBeGreaterThanOrEqual(28_000);
      expect(retryAfterMs).toBeLessThanOrEqual(31_000);
      expect(fake.journal.writes()).toHaveLength(1);
      clock.skip(retryAfterMs);
      expect((await system.rank(bob)).status).toBe(200);
    })(),
  );

  test('is observed if it is shorter than the deadline', () =>
    onOpenCloud(async (system) => {
      system.fake.faults.add({ operation: 'assign', kind: 'status 429', headers: { 'retry-after': '1' } });
      const { answer, tookMs } = await timed(system, () => system.rank(bob));
      expect(answer.status).toBe(200);
      expect(tookMs).toBeGreaterThanOrEqual(1_000);
      const [first, second] = system.fake.journal.writes(bob);
      expect((second?.at ?? 0) - (first?.endedAt ?? 0)).toBeGreaterThanOrEqual(990);
    })());
});

describe('the budget is the one that the platform reports', () => {
  test('even if smaller than documented: rankd uses it up, then refuses further changes, and the platform refuses no call', () =>
    onOpenCloud(
      async (system) => {
        const members = addMembers(system, 10);
        expect((await system.rank(eve, { newRankId: 10 })).status).toBe(200);
        const left = smallLimit - system.fake.journal.requests('memberships').length;
        const all = await Promise.all(members.map((userId) => system.rank(userId)));
        expect(all.filter(({ status }) => status === 200)).toHaveLength(left);
        expect(new Set(all.filter(({ status }) => status !== 200).map(codeOf))).toEqual(new Set(['platform_busy']));
        expect(statuses(system)).toEqual(new Set([200]));
      },
      { fake: { limits: { memberships: smallLimit, assign: 300, unassign: 300 } } },
    )());

  test('even if larger: more than the documented 300 calls a minute succeed', () =>
    onOpenCloud(
      async (system) => {
        const { app, call, fake } = system;
        await system.rank(eve); // the responses report the budget
        for (let read = 0; read < 305; read += 1) await app.platform.getMember(eve, call());
        expect((await system.rank(bob)).status).toBe(200);
        expect(fake.journal.requests('memberships').length).toBeGreaterThan(305);
        expect(statuses(system)).toEqual(new Set([200]));
      },
      { fake: { limits: { memberships: 1_000 } }, deadlineMs: 20_000 },
    )());
});

describe('fairness', () => {
  test('a burst of 200 from the key of one game does not delay a single change of another game', () =>
    onOpenCloud(
      async (system) => {
        const other = await system.newKey('other');
        let burstDone = 0;
        const burst = addMembers(system, 200).map(async (userId) => {
          const answer = await system.rank(userId);
          burstDone += 1;
          return answer.status;
        });
        expect((await system.rank(bob, { key: other })).status).toBe(200);
        expect(burstDone).toBeLessThan(150);
        expect(new Set(await Promise.all(burst))).toEqual(new Set([200]));
        expect(statuses(system)).toEqual(new Set([200]));
      },
      { fake: { limits: { memberships: 50, assign: 50, unassign: 50 }, windowMs: 1_000 }, deadlineMs: 20_000 },
    )());

  test('a key that asks for more than Roblox admits leaves room for a later change of another game', () =>
    onOpenCloud(
      async (system) => {
        const other = await system.newKey('other');
        const flood = addMembers(system, 100).map((userId) => system.rank(userId));
        await expect.poll(() => system.fake.journal.requests('memberships').length).toBeGreaterThan(40);
        await system.clock.sleep(200);
        expect((await system.rank(bob, { key: other })).status).toBe(200);
        const answers = await Promise.all(flood);
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
        expect(statuses(system)).toEqual(new Set([200]));
      },
      { fake: { limits: { memberships: 50, assign: 50, unassign: 50 }, windowMs: 60_000 }, deadlineMs: 2_000 },
    )());

  test('changes with one key are first come, first served', () =>
    onOpenCloud(
      async (system) => {
        const { fake, app } = system;
        const members = addMembers(system, 12);
        fake.budgets.use('memberships', 300 - fake.journal.requests('memberships').length - 2);
        await system.rank(eve); // from now on, all reads must wait for the next window
        const asked: Array<ReturnType<OpenCloudApp['rank']>> = [];
        for (const userId of members) {
          asked.push(system.rank(userId));
          await expect.poll(() => app.requests.count, { interval: 1 }).toBe(asked.length);
        }
        system.clock.skip(60_000);
        await Promise.all(asked);
        const read = fake.journal.requests('memberships').map(({ path }) => Number(/users%2F(\d+)/.exec(path)?.[1]));
        expect(read.filter((userId) => members.includes(userId))).toEqual(members);
        expect(members.map((userId) => fake.group.held(userId))).toEqual(members.map(() => [officer]));
      },
      { deadlineMs: 90_000 },
    )());
});

/**
 * For three minutes, three keys request three times as many changes as Roblox admits, and a fourth key requests a few.
 */
describe('when keys exceed the budget', () => {
  const budget = { calls: 100, windowMs: 60_000 };
  const windows = 3;
  const deadlineMs = 20_000;
  const answersInMs = 100;
  let fake: FakeOpenCloud;
  let asked: TimedChange[];

  beforeAll(async () => {
    const clock = new ManualClock();
    const limits = { ...documentedLimits, memberships: budget.calls, assign: budget.calls, unassign: budget.calls };
    const opening = openCloudAppOn(clock, {
      deadlineMs,
      readLagMs: 8_000,
      fake: { limits, windowMs: budget.windowMs, latencyMs: answersInMs },
      tuning: { ...defaultTuning, publicRolesTimeoutMs: 4_000 },
    });
    await using system = await clock.passUntil(opening);
    fake = system.fake;
    asked = await clock.passUntil(exceedBudget(system));
  });

  /** Requests every change on schedule, without waiting for the outcomes of the others. */
  async function exceedBudget({
    clock,
    newKey,
    rank,
    fake: { group },
  }: OpenCloudApp<ManualClock>): Promise<TimedChange[]> {
    const beganAt = clock.monotonic();
    let lastMember = 20_000;
    const ask = async (secret: string, key: string): Promise<TimedChange> => {
      lastMember += 1;
      const userId = lastMember;
      group.setMember(userId, [trainee]);
      const at = clock.monotonic() - beganAt;
      const { status, json } = await rank(userId, { key: secret });
      const endedAt = clock.monotonic() - beganAt;
      const written = fake.journal.writes(userId)[0];
      const writtenAt = written && written.at - beganAt;
      return { key, userId, at, endedAt, writtenAt, status, code: (json as { code?: string }).code };
    };
    const rankRegularly = async (key: string, everyMs: number) => {
      const secret = await newKey(key);
      const all: Array<Promise<TimedChange>> = [];
      for (let at = 0; at < windows * budget.windowMs; at += everyMs) {
        await clock.sleep(Math.max(0, beganAt + at - clock.monotonic()));
        all.push(ask(secret, key));
      }
      return Promise.all(all);
    };
    const perKeyMs = budget.windowMs / budget.calls;
    const keys = ['one', 'two', 'three'].map((key) => rankRegularly(key, perKeyMs));
    return (await Promise.all([...keys, rankRegularly('single', 19_300)])).flat();
  }

  test('nearly all of the budget goes into changes, and Roblox refuses no call', () => {
    for (let from = budget.windowMs; from < windows * budget.windowMs; from += budget.windowMs) {
      const isDone = ({ status, endedAt }: TimedChange) =>
        status === 200 && endedAt >= from && endedAt < from + budget.windowMs;
      expect(asked.filter(isDone).length).toBeGreaterThanOrEqual(0.97 * budget.calls);
    }
    expect(new Set(fake.journal.entries.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('each change that has begun ends before its deadline, and every other caller gets platform_busy', () => {
    for (const one of asked) {
      const hasBegun = one.writtenAt !== undefined;
      expect([one.status, one.code]).toEqual(hasBegun ? [200, undefined] : [503, 'platform_busy']);
      expect(one.endedAt - one.at).toBeLessThan(deadlineMs);
    }
  });

  test('no change with enough time is refused: no later change with the same key was written within that time', () => {
    const needsMs = deadlineMs / 20 + 4 * answersInMs; // the margin for delays, and four calls
    const isOvertakenBy = (one: TimedChange, { key, at, writtenAt = Number.POSITIVE_INFINITY }: TimedChange) =>
      key === one.key && at > one.at && writtenAt < one.at + deadlineMs - needsMs;
    const refused = asked.filter(({ status }) => status !== 200);
    expect(refused.filter((one) => asked.some((other) => isOvertakenBy(one, other)))).toEqual([]);
  });

  test('a single change with another key does not wait longer than its own calls take', () => {
    const waits = asked.filter(({ key }) => key === 'single').map(({ at, endedAt }) => endedAt - at);
    expect(waits.length).toBeGreaterThan(8);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_000);
  });
});

test('while Roblox hangs, 200 simultaneous Discord commands are acknowledged, and each reply reports whether it succeeded', async () => {
  const clock = new ManualClock(Date.now());
  await using at = await startFakeDiscord();
  const { discord } = at;
  const opening = openCloudAppOn(clock, { discord: discordConfig(at.apiBaseUrl) });
  const system = await clock.passUntil(opening);
  onTestFinished(() => clock.passUntil(Promise.resolve(system[Symbol.asyncDispose]())));
  const { app, url, fake } = system;
  await createDiscordKey(app, { name: 'hr', mode: 'live', scopes: ['rank'], by: 'cli:ann@host' });
  fake.faults.add({ operation: 'any', kind: 'hang', times: 8 });
  const members = addMembers(system, 200);
  const commands = members.map((member) => ({
    ...{ name: 'promote', options: { user: String(member) }, userId: `44000000000000${member}` },
  }));
  const sent = await Promise.all(commands.map((command) => discord.interact(`${url}/discord/interactions`, command)));
  expect(sent.filter(({ response }) => response.type !== 5)).toEqual([]);
  await clock.passUntil(expect.poll(() => discord.replies, { timeout: 60_000 }).toHaveLength(200));
  const replies = await Promise.all(sent.map((one) => discord.replyTo(one)));
  const isOfficer = members.map((member) => fake.group.held(member)?.includes(officer) ?? false);
  expect(replies.map((reply) => reply.includes('is now Officer'))).toEqual(isOfficer);
  expect(isOfficer.filter(Boolean).length).toBeGreaterThan(100);
  expect(fake.violations()).toEqual([]);
  expect(discord.violations).toEqual([]);
});

/** Times are relative to the first request. */
interface TimedChange {
  key: string;
  userId: number;
  at: number;
  endedAt: number;
  /** `undefined` if nothing was written. */
  writtenAt: number | undefined;
  status: number;
  code: string | undefined;
}
