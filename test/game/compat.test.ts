import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { systemClock } from '../../src/base/clock.ts';
import { RankdError } from '../../src/base/errors.ts';
import { openTestApp, place, roles, type TestApp, type TestAppOptions } from '../support/open-test-app.ts';
import { platformWith } from '../support/platform-with.ts';
import { forwardTo, Game } from './game.ts';

/** A response as the client sees it: whether the request succeeded, the status and the decoded body. */
interface Seen {
  succeeded: boolean;
  status: number;
  reply: unknown;
}

/** Clients of the services whose API formats rankd accepts, modeled on their public code or API reference. */
const clients = {
  /** Sends requests as RankGun's current API reference describes. */
  rankgun: `
    local HttpService = game:GetService("HttpService")
    local paths = { setRank = "setrank", promote = "promote", demote = "demote" }
    local response = HttpService:RequestAsync({
      Url = "https://rankd.example.com/api/roblox/" .. paths[given.operation],
      Method = "POST",
      Headers = { ["Content-Type"] = "application/json", ["x-api-key"] = given.key },
      Body = HttpService:JSONEncode({ userId = given.user, rankId = given.rank, reason = "quiz", workspaceId = 7 }),
    })
    local decoded = HttpService:JSONDecode(response.Body)
    return { succeeded = response.Success and decoded.success, status = response.StatusCode, reply = decoded }`,
  /** Sends no content type, like scripts for RankGun's third version and RankGun's in-game center. */
  'old rankgun': `
    local HttpService = game:GetService("HttpService")
    local paths = { setRank = "set-rank", promote = "promote", demote = "demote" }
    local response = HttpService:RequestAsync({
      Url = "https://rankd.example.com/roblox/" .. paths[given.operation],
      Method = "POST",
      Headers = { ["api-token"] = given.key },
      Body = HttpService:JSONEncode({
        user_id = tostring(given.user), workspace_id = "7", rank = if given.rank then tostring(given.rank) else nil,
      }),
    })
    local decoded = HttpService:JSONDecode(response.Body)
    return { succeeded = decoded.success == true, status = response.StatusCode, reply = decoded }`,
  /** Decodes every body and treats a message in it as an error, like noblox.js-server's module. */
  'noblox-server': `
    local HttpService = game:GetService("HttpService")
    local steps = { promote = 1, demote = -1 }
    local isStep = steps[given.operation] ~= nil
    local response = HttpService:RequestAsync({
      Url = "https://rankd.example.com/group/1/member/" .. given.user .. (if isStep then "/rank-change" else "/rank"),
      Method = "POST",
      Headers = { ["Content-Type"] = "application/json", Authorization = given.key },
      Body = HttpService:JSONEncode(if isStep then { change = steps[given.operation] } else { rank = given.rank }),
    })
    local success, decoded = pcall(HttpService.JSONDecode, HttpService, response.Body)
    return { succeeded = success and decoded.message == nil, status = response.StatusCode, reply = decoded }`,
} as const;

const rank = z.int().min(0).max(255);
const requestId = z.string().regex(/^req_/);
const errorFields = {
  success: z.literal(false),
  error: z.string().min(1),
  message: z.string().min(1),
  code: z.string().regex(/^[a-z_]+$/),
  requestId,
  retryAfter: z.int().min(1).optional(),
};
const role = z.strictObject({
  ...{ id: z.int(), ID: z.int(), name: z.string(), rank, memberCount: z.null().optional() },
});
const rankgunTable = {
  success: z.strictObject({
    ...{ success: z.literal(true), oldRank: rank, newRank: rank, username: z.string().min(1) },
    ...{ message: z.string(), requestId, changeId: z.string().regex(/^chg_/) },
  }),
  failure: z.strictObject(errorFields),
};
const tables = {
  rankgun: rankgunTable,
  'old rankgun': rankgunTable,
  'noblox-server': {
    success: z.union([role, z.strictObject({ newRole: role, oldRole: role })]),
    failure: z.strictObject({ ...errorFields, statusCode: z.int() }),
  },
};

type Client = keyof typeof clients;
const names = Object.keys(clients) as Client[];

interface Asked {
  operation: 'setRank' | 'promote' | 'demote';
  user?: number;
  rank?: number | string;
  key?: string;
}

/**
 * Sends a client's request from a game in the whitelisted place, and validates the response against the client's
 * schemas.
 */
async function play(app: TestApp, client: Client, asked: Asked): Promise<Seen & { reply: Record<string, unknown> }> {
  await using game = await Game.start({ clock: systemClock, placeId: place, serve: forwardTo(app.url) });
  const given = { user: 1001, key: await keyOf(app), ...asked };
  const seen = await game.run<Seen>(`local given = ...\n${clients[client]}`, given);
  const table = seen.status === 200 ? tables[client].success : tables[client].failure;
  return { ...seen, reply: table.parse(seen.reply) as Record<string, unknown> };
}

const keysByApp = new Map<TestApp, Promise<string>>();
function keyOf(app: TestApp): Promise<string> {
  const known = keysByApp.get(app) ?? app.createKey();
  keysByApp.set(app, known);
  return known;
}

function openWith({ config, ...options }: TestAppOptions = {}): Promise<TestApp> {
  return openTestApp({ config: { compat: ['rankgun', 'noblox-server'], ...config }, ...options });
}

let app: TestApp;
beforeAll(async () => {
  app = await openWith();
});
afterAll(() => app.close());

test('where noblox.js-server expects a number, values that JavaScript would convert to one are refused with a sentence', async () => {
  const headers = { authorization: await keyOf(app), 'content-type': 'application/json' };
  const post = async (path: string, body: object) => {
    const answer = await fetch(`${app.url}/group/1/member/1001/${path}?placeid=${place}`, {
      ...{ method: 'POST', headers, body: JSON.stringify(body) },
    });
    return { status: answer.status, text: await answer.text() };
  };
  for (const odd of [true, false, [1], [[1]], ' 1 ', '0x10', '1e0', '', null, {}, 1.5, 1e21, 0]) {
    const { status, text } = await post('rank-change', { change: odd });
    expect({ odd, status, text }).toEqual({
      odd,
      status: 400,
      text: expect.stringMatching(/must be a whole number other than 0/),
    });
  }
  for (const odd of [true, [20], [[20]], {}, 1.5, 1e21, -1]) {
    const { status, text } = await post('rank', { rank: odd });
    expect({ odd, status, text }).toEqual({
      odd,
      status: 400,
      text: expect.stringMatching(/must be a rank number, a role id or a role name/),
    });
  }
});

describe.each(names)('a script for %s, pointed at rankd by its address and key', (client) => {
  test('ranks, promotes and demotes', async () => {
    const done: unknown[] = [];
    for (const asked of [
      { operation: 'setRank', rank: 20 },
      { operation: 'promote' },
      { operation: 'demote' },
      { operation: 'setRank', rank: roles.trainee },
    ] as const)
      done.push(
        (await play(app, client, asked)).succeeded,
        (await app.heldBy(1001))?.filter((id) => id !== roles.base),
      );
    expect(done).toEqual([true, [roles.officer], true, [roles.captain], true, [roles.officer], true, [roles.trainee]]);
  });

  test('gets a refusal with its fix', async () => {
    const above = await play(app, client, { operation: 'setRank', rank: 255 });
    expect(above).toMatchObject({ succeeded: false, status: 400, reply: { code: 'rank_not_allowed' } });
    expect(above.reply['message']).toMatch(/owner role, which can never be given/);
    expect(await play(app, client, { operation: 'promote', user: 4242 })).toMatchObject({
      ...{ succeeded: false, status: 400, reply: { code: 'member_not_found' } },
    });
    expect(await play(app, client, { operation: 'demote', user: 1004 })).toMatchObject({
      ...{ succeeded: false, status: 400, reply: { code: 'no_further_rank' } },
    });
    const isRankgun = client !== 'noblox-server';
    expect(await play(app, client, { operation: 'promote', key: 'rk_live_nonsense' })).toMatchObject({
      ...{ succeeded: false, status: isRankgun ? 403 : 401, reply: { code: 'invalid_key' } },
    });
    if (isRankgun) expect(above.reply['error']).toBe(above.reply['message']);
    else expect(above.reply['statusCode']).toBe(400);
  });

  test('gets the expected outcome with a test key, and nothing changes', async () => {
    const before = await app.heldBy(1005);
    const key = await app.createKey({ name: `trial of ${client}`, mode: 'test' });
    expect(await play(app, client, { operation: 'promote', user: 1005, key })).toMatchObject({
      succeeded: true,
      status: 200,
    });
    expect(await app.heldBy(1005)).toEqual(before);
    const [latest] = await app.store.listChanges({ limit: 1 });
    expect(latest).toMatchObject({ rankeeId: 1005, dryRun: true });
  });

  test('changes nothing with a key that may not rank, or from a place that is not whitelisted', async () => {
    const before = await app.heldBy(1001);
    const verifier = await app.createKey({ name: `verifier of ${client}`, scopes: ['verify'] });
    const nowhere = await app.createKey({ name: `nowhere of ${client}`, places: [43] });
    for (const [key, code] of [
      [verifier, 'key_not_allowed'],
      [nowhere, 'place_not_whitelisted'],
    ] as const)
      expect(await play(app, client, { operation: 'promote', key })).toMatchObject({
        ...{ succeeded: false, status: client === 'noblox-server' ? 400 : 403, reply: { code } },
      });
    expect(await app.heldBy(1001)).toEqual(before);
  });

  test('gets the time to wait after too many requests', async () => {
    await using busy = await openWith({ config: { limits: { rankPerMinute: 1, rankBurst: 1 } } });
    await play(busy, client, { operation: 'promote' });
    expect(await play(busy, client, { operation: 'promote' })).toMatchObject({
      ...{ succeeded: false, status: 429, reply: { code: 'too_many_requests', retryAfter: expect.any(Number) } },
    });
  });

  test('never gets success or refusal for a change with an unknown outcome', async () => {
    await using lost = await openWith({
      config: { server: { deadlineMs: 500 } },
      platform: (group) =>
        platformWith(group, { assignRole: () => Promise.reject(new RankdError('outcome_unknown', 'Lost.')) }),
    });
    expect(await play(lost, client, { operation: 'promote' })).toMatchObject({
      ...{ succeeded: false, status: 504, reply: { code: 'outcome_unknown' } },
    });
  });
});

describe('over plain HTTP,', () => {
  const post = async (path: string, { body, headers }: { body?: unknown; headers?: Record<string, string> }) => {
    const sent = { method: 'POST', headers: { 'roblox-id': String(place), ...headers }, body: JSON.stringify(body) };
    const response = await fetch(app.url + path, sent);
    const reply = (await response.json()) as Record<string, unknown>;
    return { status: response.status, reply };
  };
  const codesOf = async (path: string, bodies: unknown[]) => {
    const headers = { authorization: await keyOf(app), 'x-api-key': await keyOf(app) };
    const answers = [];
    for (const body of bodies) answers.push(await post(path, { body, headers }));
    return answers.map(({ status, reply }) => `${status} ${reply['code'] ?? 'ok'}`);
  };

  test('RankGun routes return the old and new rank, and accept the key in each of their headers', async () => {
    const key = await keyOf(app);
    await post('/api/roblox/setrank', { body: { userId: 1001, rankId: 10 }, headers: { 'x-api-key': key } });
    await app.store.storeUserName({ id: 1001, name: 'Newcomer', at: app.app.clock.now() }, { since: 0 });
    const { reply } = await post('/api/roblox/promote', { body: { userId: 1001 }, headers: { 'x-api-key': key } });
    expect(reply).toMatchObject({ success: true, oldRank: 10, newRank: 20, username: 'Newcomer' });
    const unnamed = { body: { userId: 1005, rankId: 20 }, headers: { 'x-api-key': key } };
    expect((await post('/api/roblox/setrank', unnamed)).reply).toMatchObject({ username: '1005' });
    const again = { userId: 1001, rankId: 20 };
    for (const headers of [
      { authorization: `Bearer ${key}` },
      ...['staff-token', 'api-token', 'api_token'].map((name) => ({ [name]: key })),
    ])
      expect([headers, (await post('/api/roblox/setrank', { body: again, headers })).status]).toEqual([headers, 200]);
    expect((await post('/api/roblox/setrank', { body: again })).status).toBe(401);
    expect(
      await codesOf('/api/roblox/setrank', [{ userId: 1001 }, { rankId: 20 }, { userId: 'x', rankId: 20 }]),
    ).toEqual(Array(3).fill('400 invalid_request'));
  });

  test('noblox.js-server routes accept a rank by number or name, and move n ranks in one change', async () => {
    const [rank, change] = ['/group/1/member/1001/rank', '/group/1/member/1001/rank-change'];
    expect(await codesOf(rank, [{ rank: 10 }, { role: 'officer' }, { rank: 'Trainee' }])).toEqual(
      Array(3).fill('200 ok'),
    );
    const headers = { authorization: await keyOf(app) };
    expect((await post(change, { body: { change: 2 }, headers })).reply).toEqual({
      newRole: { id: roles.captain, ID: roles.captain, name: 'Captain', rank: 50, memberCount: null },
      oldRole: { id: roles.trainee, ID: roles.trainee, name: 'Trainee', rank: 10, memberCount: null },
    });
    expect(await codesOf(change, [{ change: 7 }, { change: 0 }, {}, { change: 'x' }])).toEqual([
      ...['400 no_further_rank', '400 invalid_request', '400 invalid_request', '400 invalid_request'],
    ]);
    expect(await codesOf(change, [{ change: '-2' }])).toEqual(['200 ok']);
    expect(await codesOf('/group/2/member/1001/rank', [{ rank: 20 }])).toEqual(['400 invalid_request']);
    expect(await codesOf('/group/1/member/x/rank', [{ rank: 20 }])).toEqual(['400 invalid_request']);
    expect((await post(rank, { body: { rank: 20 } })).status).toBe(401);
  });

  test('moving more than one rank at once is refused if the policy allows one step', async () => {
    await using strict = await openWith({ config: { policy: { steps: 'adjacent' } } });
    const headers = { authorization: await strict.createKey(), 'roblox-id': String(place) };
    const response = await fetch(`${strict.url}/group/1/member/1001/rank-change`, {
      ...{ method: 'POST', headers, body: '{"change":2}' },
    });
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'rank_not_allowed' }]);
  });

  test('an Idempotency-Key is valid for one request', async () => {
    const headers = { 'x-api-key': await keyOf(app), 'idempotency-key': 'compat' };
    const codes = [];
    for (const [path, body] of [
      ['setrank', { userId: 1001, rankId: 20 }],
      ['setrank', { userId: 1001, rankId: 20, workspaceId: 9 }],
      ['setrank', { userId: 1001, rankId: 50 }],
      ['promote', { userId: 1001 }],
    ] as const)
      codes.push((await post(`/api/roblox/${path}`, { body, headers })).reply['code'] ?? 'ok');
    expect(codes).toEqual(['ok', 'ok', 'idempotency_mismatch', 'idempotency_mismatch']);
  });

  test('the requests in docs/moving.md that replace qbot requests have the same effect', async () => {
    const guide = readFileSync(new URL('../../docs/moving.md', import.meta.url), 'utf8').split('\n## qbot\n')[1] ?? '';
    const rows = [...guide.matchAll(/^\| `POST .+? \| `POST (\/v2\/\w+)`(?:, `(\/v2\/\w+)`)? `(\{.+?\})`/gm)];
    const requests = rows.flatMap(([, path, other, body = '']) =>
      [path, other].flatMap((one) => (one ? [{ path: one, body }] : [])),
    );
    expect(requests.map(({ path }) => path)).toEqual(
      ['rank', 'promote', 'demote', 'suspend', 'unsuspend'].map((operation) => `/v2/${operation}`),
    );
    const key = await app.createKey({ name: 'of qbot', scopes: ['rank', 'suspend'] });
    for (const { path, body } of requests)
      expect([path, (await post(path, { body: JSON.parse(body), headers: { 'x-api-key': key } })).status]).toEqual([
        path,
        200,
      ]);
  });

  test('disabled routes do not exist', async () => {
    await using other = await openTestApp();
    const key = await other.createKey();
    for (const path of [
      '/api/roblox/setrank',
      '/roblox/promote',
      '/group/1/member/1001/rank',
      '/group/1/member/1/rank-change',
    ])
      for (const method of ['POST', 'GET', 'OPTIONS']) {
        const headers = { 'x-api-key': key, authorization: key, 'roblox-id': String(place) };
        const response = await fetch(other.url + path, { method, headers, ...(method === 'POST' && { body: '{}' }) });
        expect([path, response.status, ((await response.json()) as { code: string }).code]).toEqual([
          path,
          404,
          'not_found',
        ]);
      }
  });
});
