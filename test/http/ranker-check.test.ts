import { describe, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import type { KeyRules } from '../../src/core/model.ts';
import type { Platform } from '../../src/ports/index.ts';
import { codeOf, messageOf } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, type TestAppOptions } from '../support/open-test-app.ts';
import { platformWith } from '../support/platform-with.ts';

/** Users, named after their roles in the simulated group. `stranger` is not a member. */
const trainee = 1001;
const officer = 1002;
const captain = 1003;
const admin = 1010;
const stranger = 4242;
const owner = 9000;

const verify = { rankerCheck: 'verify' } as const;

async function withPolicy(policy: Partial<Config['policy']>, rules: KeyRules = {}, options = {}) {
  const app = await openTestApp({ config: { policy }, ...options });
  const key = await app.createKey({ rules });
  const rank = (rest: Record<string, unknown>) => app.rank(key, { rankerId: captain, ...rest });
  return { app, rank, [Symbol.asyncDispose]: () => app.close() };
}

describe("with policy.ranker_check: verify, which reads the ranker's rank from the platform,", () => {
  test('a ranker above the old and the new rank may make the change, with any names in the request', async () => {
    await using world = await withPolicy(verify);
    expect((await world.rank({ rankerName: 'Nobody' })).status).toBe(200);
  });

  test.each([
    ['as high as the new rank', { rankerId: officer }, /1002 has rank 20, which is not above Officer \(rank 20\)/],
    ['as high as the member', { rankerId: officer, rankeeId: 1006, newRankId: 10 }, /not above member 1006/],
    ['below the member', { rankeeId: admin, newRankId: 10 }, /not above member 1010, who holds Admin \(rank 200\)/],
    ['not a member of the group', { rankerId: stranger, rankerName: 'Owner' }, /4242 is not a member/],
    ['the member themselves', { rankerId: admin, rankeeId: admin, newRankId: 20 }, /same player/],
    ['not named', { rankerId: 0 }, /names no player/],
  ])('a ranker who is %s is refused', async (_who, request, why) => {
    const acting = platformActingAs(owner);
    await using world = await withPolicy(verify, {}, { platform: acting });
    const answer = await world.rank(request);
    expect([answer.status, codeOf(answer)]).toEqual([403, 'ranker_not_allowed']);
    expect(messageOf(answer)).toMatch(why);
    expect(messageOf(answer)).toContain('policy.ranker_check');
  });

  test('a ranker below policy.min_ranker_rank is refused', async () => {
    await using world = await withPolicy({ ...verify, minRankerRank: 100 });
    const answer = await world.rank({});
    expect(messageOf(answer)).toContain('rank 50, below 100, the minimum set by policy.min_ranker_rank');
    expect((await world.rank({ rankerId: admin })).status).toBe(200);
  });

  test('a ranker who was just demoted may no longer rank', async () => {
    await using world = await withPolicy(verify);
    expect((await world.rank({})).status).toBe(200);
    expect((await world.rank({ rankerId: admin, rankeeId: captain, newRankId: 10 })).status).toBe(200);
    const answer = await world.rank({ newRankId: 10 });
    expect(codeOf(answer)).toBe('ranker_not_allowed');
  });

  test("a system key can rank without a ranker or in the member's name, but not for a ranker who is too low", async () => {
    await using world = await withPolicy(verify, { isSystem: true });
    expect((await world.rank({ rankerId: 0 })).status).toBe(200);
    expect((await world.rank({ rankerId: trainee, newRankId: 50 })).status).toBe(200);
    expect(codeOf(await world.rank({ rankerId: officer, newRankId: 20 }))).toBe('ranker_not_allowed');
  });

  test('the ranker is not read for a change that is refused anyway or has no effect', async () => {
    const read: number[] = [];
    const platform = (group: Platform) =>
      platformWith(group, {
        getMember: (userId, call) => {
          read.push(userId);
          return group.getMember(userId, call);
        },
      });
    await using world = await withPolicy({ ...verify, lockedRoles: [20] }, {}, { platform });
    expect(codeOf(await world.rank({}))).toBe('rank_not_allowed');
    expect((await world.rank({ newRankId: 10 })).status).toBe(200);
    expect(read).not.toContain(captain);
    expect((await world.rank({ newRankId: 1 })).status).toBe(200);
    expect(read).toContain(captain);
  });
});

test('with policy.ranker_check: claimed, the request must name another player, who need not be a member', async () => {
  await using world = await withPolicy({ rankerCheck: 'claimed' });
  expect(codeOf(await world.rank({ rankerId: 0 }))).toBe('ranker_not_allowed');
  expect(codeOf(await world.rank({ rankerId: trainee }))).toBe('ranker_not_allowed');
  expect((await world.rank({ rankerId: stranger })).status).toBe(200);
});

test('a key can deny self-rank even if the policy allows it', async () => {
  await using world = await withPolicy({}, { selfRank: 'deny' });
  expect(codeOf(await world.rank({ rankerId: trainee }))).toBe('ranker_not_allowed');
  expect((await world.rank({})).status).toBe(200);
});

test('a key for promotions refuses demotions', async () => {
  await using world = await withPolicy({}, { direction: 'promote' });
  expect([(await world.rank({})).status, codeOf(await world.rank({ newRankId: 1 }))]).toEqual([200, 'key_not_allowed']);
});

describe("a ranker's cooldown", () => {
  const minute = { rankerCooldownMs: 60_000 };

  test('applies to all their changes until it ends, and to no other ranker', async () => {
    const clock = new ManualClock();
    await using world = await withPolicy(minute, {}, { clock });
    expect((await world.rank({})).status).toBe(200);
    await clock.advance(58_500);
    const refused = await world.rank({ rankeeId: officer, newRankId: 10 });
    expect([refused.status, codeOf(refused), refused.headers['retry-after']]).toEqual([429, 'cooldown', '2']);
    expect(messageOf(refused)).toContain('policy.ranker_cooldown');
    expect((await world.rank({ rankerId: admin, rankeeId: officer, newRankId: 10 })).status).toBe(200);
    await clock.advance(1_500);
    expect((await world.rank({ rankeeId: 1005 })).status).toBe(200);
  });

  test('is not started by a refusal or by a change to the current rank', async () => {
    await using world = await withPolicy(minute);
    expect((await world.rank({ newRankId: 10 })).status).toBe(200);
    expect((await world.rank({ newRankId: 21 })).status).toBe(400);
    expect((await world.rank({})).status).toBe(200);
  });

  test('never delays a change without a player behind it', async () => {
    await using world = await withPolicy(minute);
    expect((await world.rank({ rankerId: 0 })).status).toBe(200);
    expect((await world.rank({ rankerId: 0, rankeeId: officer, newRankId: 10 })).status).toBe(200);
  });

  test('admits one of several simultaneous changes', async () => {
    const members = [1001, 1002, 1005, 1006, 1009];
    await using world = await withPolicy(minute, {}, { platform: waitingForReadsOf(members) });
    const answers = await Promise.all(members.map((rankeeId) => world.rank({ rankeeId, newRankId: 50 })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429, 429, 429, 429]);
  });
});

/** Delays reads of these members until all of them have begun, so that the changes are decided at the same time. */
function waitingForReadsOf(members: number[]): TestAppOptions['platform'] {
  const asked = new Set<number>();
  const all = Promise.withResolvers<void>();
  return (group) =>
    platformWith(group, {
      getMember: async (userId, call) => {
        asked.add(userId);
        if (members.every((member) => asked.has(member))) all.resolve();
        if (members.includes(userId)) await all.promise;
        return group.getMember(userId, call);
      },
    });
}

/** Returns a group with this acting account. If the account is the owner, every refusal comes from rankd. */
function platformActingAs(userId: number): TestAppOptions['platform'] {
  return (group) => platformWith(group, { checkCredential: async () => ({ state: 'valid', userId, canWrite: true }) });
}
