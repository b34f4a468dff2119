import { expect } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import { RankdError } from '../../src/base/errors.ts';
import type { Role } from '../../src/core/model.ts';
import type { Platform } from '../../src/ports/index.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import type { DaemonContext } from '../../src/usecases/daemon-context.ts';
import { type ExpectedError, expectError } from '../support/answers.ts';
import { type Answer, place, type Sent, send, type TestApp, type TestAppOptions } from '../support/open-test-app.ts';
import { holdWrites, platformWith } from '../support/platform-with.ts';
import { runSql } from '../support/store-of-app.ts';

export async function suspend(
  app: DaemonContext,
  rankeeId: number,
  endsAt = app.clock.now() + 3_600_000,
): Promise<void> {
  using deadline = deadlineIn(app.clock, 5_000);
  const request = { rankeeId, rankeeName: '', rankerId: 0, rankerName: 'operator', newRankId: 0 };
  const caller = { by: 'cli:ann@host', dryRun: false };
  await changeRank(app, { caller, request, hold: { kind: 'suspension', endsAt } }, deadline);
}

export interface Case extends Omit<ExpectedError, 'code'> {
  options?: TestAppOptions;
  /** Triggers the error; by default, a rank request for member 1001. */
  provoke?: (app: TestApp) => Promise<Answer>;
}

export const rank =
  (rest: Record<string, unknown> = {}, sent: Sent = {}) =>
  async (app: TestApp): Promise<Answer> =>
    app.rank(await app.createKey(), rest, sent);

/** Provokes an error with a second request, after a first one with the same key and options has succeeded. */
export const again =
  (rest: Record<string, unknown>, sent: Sent = {}) =>
  async (app: TestApp) => {
    const key = await app.createKey();
    expect((await app.rank(key, {}, sent)).status).toBe(200);
    return app.rank(key, rest, sent);
  };

function withTwin(roles: Role[]): Role[] {
  return [...roles, { id: 70_030, name: 'OFFICER', rank: 30, kind: 'custom' }];
}

function onV2(operation: string, body: unknown) {
  return async (app: TestApp): Promise<Answer> =>
    app.post(`/v2/${operation}?placeid=${place}`, { key: await app.createKey(), body });
}

export const failing = (error: unknown): TestAppOptions => {
  const fail = () => Promise.reject(error);
  return { platform: (group) => platformWith(group, { assignRole: fail, unassignRole: fail }) };
};

const busy = new RankdError('platform_busy', 'No room before the deadline.', { retryAfterMs: 2_500 });

const hidden: TestAppOptions = {
  config: { server: { deadlineMs: 500 } },
  platform: (group: Platform) =>
    platformWith(group, { assignRole: () => Promise.reject(new RankdError('outcome_unknown', 'Lost.')) }),
};

/** SQL with the same effect on each engine. */
type Sql = Parameters<typeof runSql>[1];

export function drop(table: string): Sql {
  return { sqlite: `DROP TABLE ${table}`, postgres: `DROP TABLE rankd.${table}` };
}

export const rejectAll: Sql = {
  sqlite: "CREATE TRIGGER no BEFORE INSERT ON rank_changes BEGIN SELECT RAISE(ABORT, 'inside of rankd'); END",
  postgres: `CREATE TRIGGER no BEFORE INSERT ON rankd.rank_changes
    FOR EACH ROW EXECUTE FUNCTION rankd.audit_refuses('inside of rankd')`,
};

/** A group with two roles at rank 200. */
const groupWithTwins = new URL('../fixtures/group.yaml', import.meta.url).pathname;

const idempotent = { headers: { 'idempotency-key': 'one' } };

/** Each code that a game can receive except `request_timeout`, with the expected response and a way to provoke it. */
export const cases: Record<string, Case> = {
  missing_placeid: { status: 400, error: 'Missing placeid', provoke: (app) => app.post('/v1/apikey', { body: {} }) },
  invalid_request: { status: 400, error: 'Invalid request', provoke: rank({}, { body: '{"rankerName":' }) },
  missing_authorization: {
    status: 401,
    error: 'Missing or invalid Authorization header',
    provoke: (app) => app.post('/v1/apikey', { body: { placeid: place } }),
  },
  invalid_key: { status: 401, error: 'Invalid API Key', provoke: (app) => app.rank('rk_live_nonsense') },
  place_not_whitelisted: {
    status: 403,
    error: 'Place not whitelisted',
    provoke: async (app) => app.rank(await app.createKey({ places: [] })),
  },
  key_not_allowed: {
    status: 403,
    error: 'Not allowed for this key',
    provoke: async (app) => app.rank(await app.createKey({ scopes: ['verify'] })),
  },
  rank_not_allowed: { status: 403, error: 'Rank not allowed', provoke: rank({ newRankId: 255 }) },
  member_protected: {
    status: 403,
    error: 'Member protected',
    options: { config: { policy: { protectedMembers: [1001] } } },
  },
  ranker_not_allowed: {
    status: 403,
    error: 'Ranker not allowed',
    options: { config: { policy: { selfRank: 'deny' } } },
    provoke: rank({ rankerId: 1001 }),
  },
  above_acting_account: { status: 403, error: 'Above the acting account', provoke: rank({ rankeeId: 9000 }) },
  member_not_found: { status: 404, error: 'Member not found', provoke: rank({ rankeeId: 4242 }) },
  unknown_rank: { status: 400, error: 'Unknown rank', provoke: rank({ newRankId: 21 }) },
  ambiguous_rank: {
    status: 409,
    error: 'Ambiguous rank',
    options: { config: { platform: { kind: 'simulated', groupFile: groupWithTwins } } },
    provoke: rank({ rankeeId: 12, newRankId: 200 }),
  },
  ambiguous_name: {
    status: 409,
    error: 'Ambiguous name',
    options: { platform: (group) => platformWith(group, { roles: async (call) => withTwin(await group.roles(call)) }) },
    provoke: onV2('rank', { robloxUserId: 1001, rank: 'officer' }),
  },
  configuration_misfit: {
    status: 409,
    error: 'Configuration does not fit the group',
    provoke: async (app) => app.rank(await app.createKey({ rules: { maxRank: 20, maxRankRole: 4_242 } })),
  },
  needs_ladder: {
    status: 409,
    error: 'Needs a ladder',
    provoke: async (app) => {
      const key = await app.createKey({ scopes: ['roles'] });
      return app.post(`/v2/roles/add?placeid=${place}`, { key, body: { robloxUserId: 1001, role: 50 } });
    },
  },
  no_further_rank: { status: 409, error: 'No further rank', provoke: onV2('demote', { robloxUserId: 1004 }) },
  reason_required: {
    status: 400,
    error: 'Reason required',
    options: { config: { policy: { reason: 'required' } } },
    provoke: rank(),
  },
  rank_differs: { status: 409, error: 'Rank differs', provoke: onV2('promote', { robloxUserId: 1001, ifRank: 20 }) },
  user_not_found: { status: 404, error: 'User not found', provoke: onV2('promote', { username: 'Nobody' }) },
  user_renamed: {
    status: 409,
    error: 'User renamed',
    options: {
      platform: (group) => platformWith(group, { findUser: async () => ({ id: 1001, name: 'Newcomer' }) }),
    },
    provoke: onV2('promote', { username: 'OldNewcomer' }),
  },
  idempotency_mismatch: { status: 422, error: 'Idempotency key reused', provoke: again({ newRankId: 50 }, idempotent) },
  idempotency_in_progress: twiceAtOnce(),
  not_found: { status: 404, error: 'Not found', provoke: (app) => app.post('/v2/ranker') },
  method_not_allowed: {
    status: 405,
    error: 'Method not allowed',
    provoke: (app) => send(`${app.url}/v1/apikey`, { method: 'GET' }),
  },
  body_too_large: { status: 413, error: 'Body too large', provoke: rank({}, { body: 'x'.repeat(65_537) }) },
  headers_too_large: {
    status: 431,
    error: 'Headers too large',
    provoke: (app) => app.post('/v1/apikey', { headers: { padding: 'x'.repeat(20_000) } }),
  },
  member_suspended: {
    status: 403,
    error: 'Member suspended',
    provoke: async (app) => {
      const key = await app.createKey();
      await suspend(app.app, 1001);
      return app.rank(key);
    },
  },
  already_suspended: {
    status: 409,
    error: 'Already suspended',
    provoke: async (app) => {
      const key = await app.createKey({ scopes: ['suspend'] });
      await suspend(app.app, 1001);
      return app.post(`/v2/suspend?placeid=${place}`, { key, body: { robloxUserId: 1001, duration: '1h' } });
    },
  },
  not_suspended: {
    status: 404,
    error: 'Not suspended',
    provoke: async (app) => {
      const key = await app.createKey({ scopes: ['suspend'] });
      return app.post(`/v2/unsuspend?placeid=${place}`, { key, body: { robloxUserId: 1001 } });
    },
  },
  suspended_by_operator: {
    status: 403,
    error: 'Suspended by the operator',
    provoke: async (app) => {
      const key = await app.createKey({ scopes: ['suspend'] });
      await suspend(app.app, 1001);
      return app.post(`/v2/unsuspend?placeid=${place}`, { key, body: { robloxUserId: 1001 } });
    },
  },
  cooldown: {
    status: 429,
    error: 'Cooldown active',
    waits: true,
    options: { config: { policy: { cooldowns: [{ from: 0, forMs: 60_000 }] } } },
    provoke: again({ newRankId: 50 }),
  },
  too_many_requests: {
    status: 429,
    error: 'Too many requests',
    waits: true,
    options: { config: { limits: { rankPerMinute: 1, rankBurst: 1 } } },
    provoke: again({}),
  },
  key_paused: {
    status: 429,
    error: 'Key paused',
    options: {
      config: {
        policy: { breaker: { enabled: true, demotions: 1, highRank: undefined, highChanges: 1, windowMs: 60_000 } },
      },
    },
    provoke: demoteTwo,
  },
  internal: { status: 500, error: 'Internal Server Error', provoke: afterSql(rejectAll) },
  platform_rejected: {
    status: 502,
    error: 'Rejected by Roblox',
    options: failing(new RankdError('platform_rejected', 'Roblox refused the change.')),
  },
  platform_credential: {
    status: 502,
    error: 'Roblox key not accepted',
    options: failing(new RankdError('platform_credential', 'Roblox does not accept the key.')),
  },
  platform_busy: {
    status: 503,
    error: 'Roblox busy',
    waits: true,
    options: { platform: (group) => platformWith(group, { getMember: () => Promise.reject(busy) }) },
  },
  platform_unavailable: {
    status: 503,
    error: 'Roblox unavailable',
    options: failing(new RankdError('platform_unavailable', 'Roblox does not answer.')),
  },
  store_unavailable: { status: 503, error: 'Store unavailable', provoke: afterSql(drop('rank_changes')) },
  shutting_down: {
    status: 503,
    error: 'Shutting down',
    waits: true,
    provoke: async (app) => {
      app.app.requests.isDraining = true;
      return rank()(app);
    },
  },
  outcome_unknown: { status: 504, error: 'Outcome unknown', options: hidden },
};

function twiceAtOnce(): Case {
  const { platform, begun, release } = holdWrites();
  const provoke = async (app: TestApp) => {
    const key = await app.createKey();
    const first = app.rank(key, {}, idempotent);
    await begun;
    const second = await app.rank(key, {}, idempotent);
    release();
    expect((await first).status).toBe(200);
    return second;
  };
  return { status: 409, error: 'Still in progress', waits: true, options: { platform }, provoke };
}

/** Sends two demotions, the second of which trips the circuit breaker, and then one more request. */
async function demoteTwo(app: TestApp): Promise<Answer> {
  const key = await app.createKey();
  const down = (rankeeId: number) => app.rank(key, { rankeeId, newRankId: 1 });
  expect((await down(1001)).status).toBe(200);
  expectError(await down(1002), { status: 429, code: 'key_paused', error: 'Key paused' });
  return app.rank(key, { rankeeId: 1005, newRankId: 50 });
}

/** Runs `sql` as a different client of the database, and then requests a rank change. */
export function afterSql(sql: Sql): (app: TestApp) => Promise<Answer> {
  return async (app) => {
    const key = await app.createKey();
    await runSql(app.dataDir, sql);
    return app.rank(key);
  };
}
