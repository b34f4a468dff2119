import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeOf, expectError, messageOf } from '../support/answers.ts';
import { type Answer, openTestApp, place, roles, type Sent, send, type TestApp } from '../support/open-test-app.ts';
import { holdWrites, platformWith } from '../support/platform-with.ts';
import { suspend } from './error-cases.ts';

let app: TestApp;
let key: string;

beforeAll(async () => {
  app = await openTestApp({
    config: { limits: { rankBurst: 0, rankPerMinute: 0 } },
    platform: (group) =>
      platformWith(group, {
        findUser: async (name, call) =>
          name === 'Builderman' ? { id: 1001, name: 'Newcomer' } : group.findUser(name, call),
      }),
  });
  key = await app.createKey();
});

afterAll(() => app.close());

function ask(operation: string, body: unknown, sent: Sent = {}): Promise<Answer> {
  return app.post(`/v2/${operation}?placeid=${place}`, { key, body, ...sent });
}

describe('POST /v2/rank', () => {
  test('gives the rank by number, role id or name, and returns the previous one', async () => {
    const answer = await ask('rank', {
      ...{ robloxUserId: 1001, rank: 20, reason: 'passed the training', rankeeName: 'Sam', command: ':rank' },
      ...{ rankerId: 1003, rankerName: 'Builder' },
    });
    expect(answer.json).toEqual({
      success: true,
      requestId: answer.headers['x-request-id'],
      message: 'Sam (1001) is now Officer (rank 20), was Trainee (rank 10). (simulated group)',
      workspaceId: (await app.store.getWorkspace()).id,
      robloxUserId: 1001,
      oldRank: 10,
      newRank: 20,
      roleName: 'Officer',
      changeId: answer.headers['x-rank-change'],
    });
    expect(await app.store.findChange(String(answer.headers['x-rank-change']))).toMatchObject({
      ...{ state: 'applied', placeId: place, reason: 'passed the training', command: ':rank' },
      ...{ rankeeId: 1001, rankeeName: 'Sam', rankerId: 1003, rankerName: 'Builder', newRankId: 20 },
    });
    for (const [rank, newRank, oldRank] of [
      [roles.captain, 50, 20],
      ['  trainee', 10, 50],
      ['20', 20, 10],
      [String(roles.captain), 50, 20],
      ['OFFICER', 20, 50],
    ])
      expect((await ask('rank', { robloxUserId: '1001', rank })).json).toMatchObject({ newRank, oldRank });
    expect(await app.heldBy(1001)).toEqual([roles.officer, roles.base]);
  });

  test('accepts only the current name of a member', async () => {
    expect((await ask('rank', { username: 'newCOMER', rank: 10 })).json).toMatchObject({
      message: expect.stringMatching(/^Newcomer \(1001\) is now Trainee/),
      robloxUserId: 1001,
    });
    const renamed = await ask('rank', { username: 'Builderman', rank: 20 });
    expectError(renamed, { status: 409, code: 'user_renamed', error: 'User renamed' });
    expect(messageOf(renamed)).toBe('Newcomer (1001) used to be called Builderman: use 1001 or @Newcomer.');
    const unknown = await ask('rank', { username: '__proto__', rank: 20 });
    expectError(unknown, { status: 404, code: 'user_not_found', error: 'User not found' });
    expect(await app.heldBy(1001)).toContain(roles.trainee);
  });

  test('stores 200 characters of the reason, and masks a key in it', async () => {
    const answer = await ask('rank', { robloxUserId: 1001, rank: 20, reason: `${key} ${'x'.repeat(400)}` });
    const change = await app.store.findChange(String(answer.headers['x-rank-change']));
    expect([...(change?.reason ?? '')].length).toBe(200);
    expect(JSON.stringify(change)).not.toContain(key);
  });

  test.each<[unknown, string]>([
    [{}, 'rank is missing.'],
    [{ rank: 20 }, 'robloxUserId or username is missing.'],
    [{ robloxUserId: 1001, username: 'Newcomer', rank: 20 }, 'robloxUserId and username are both set; send only one.'],
    [{ robloxUserId: 0, rank: 20 }, 'robloxUserId must be above 0.'],
    [
      { username: 'Ann Example', rank: 20 },
      'username must be 3 to 20 letters, digits and underscores: the user name, not the display name.',
    ],
    [{ robloxUserId: 1001, rank: '' }, 'rank must be a rank number, a role id or a role name.'],
    [{ robloxUserId: 1001, rank: 2.5 }, 'rank must be a rank number, a role id or a role name.'],
    [{ robloxUserId: 1001, rank: 20, reason: 7 }, 'reason must be a string.'],
    [[], 'The body must be a JSON object.'],
  ])('%j is refused with a description of the problem', async (body, message) => {
    const answer = await ask('rank', body);
    expect([answer.status, codeOf(answer), messageOf(answer)]).toEqual([400, 'invalid_request', message]);
  });

  test('reports an unknown role with a list of the existing ones', async () => {
    const answer = await ask('rank', { robloxUserId: 1001, rank: 'Offizer' });
    expectError(answer, { status: 400, code: 'unknown_rank', error: 'Unknown rank' });
    expect(messageOf(answer)).toMatch(/no role "Offizer". Did you mean Officer \(rank 20\)\? Choose one of /);
  });
});

describe('the rank that a change expects', () => {
  test.each([
    ['rank', { rank: 20 }],
    ['promote', {}],
    ['demote', {}],
  ])("on /v2/%s must be the member's current rank, by number, id or name", async (operation, body) => {
    await using app = await openTestApp();
    const key = await app.createKey();
    const ask = (rest: object) =>
      app.post(`/v2/${operation}?placeid=${place}`, { key, body: { robloxUserId: 1001, ...body, ...rest } });
    for (const ifRank of [20, '20', roles.captain, 'Officer', 1, 0]) {
      const refused = await ask({ ifRank });
      expectError(refused, { status: 409, code: 'rank_differs', error: 'Rank differs' });
      expect(messageOf(refused)).toContain(
        `Member 1001 is Trainee (rank 10); the request expects ${ifRank}. Nothing was changed.`,
      );
    }
    expectError(await ask({ ifRank: 'Nothing' }), { status: 400, code: 'unknown_rank', error: 'Unknown rank' });
    expectError(await ask({ ifRank: '' }), { status: 400, code: 'invalid_request', error: 'Invalid request' });
    expect(await app.heldBy(1001)).toContain(roles.trainee);
    expect((await ask({ ifRank: 'trainee' })).json).toMatchObject({ success: true, oldRank: 10 });
  });

  test('is compared when the change starts, not when it arrives', async () => {
    const { platform, begun, release } = holdWrites();
    await using app = await openTestApp({ platform });
    const key = await app.createKey();
    const ask = () => app.post(`/v2/promote?placeid=${place}`, { key, body: { robloxUserId: 1001, ifRank: 10 } });
    const first = ask();
    await begun;
    const second = ask();
    release();
    expect((await first).status).toBe(200);
    expect(codeOf(await second)).toBe('rank_differs');
  });

  test('with atLeast, a member with that rank or a higher one keeps it, regardless of the ceiling', async () => {
    await using app = await openTestApp();
    const key = await app.createKey({ name: 'low', rules: { maxRank: 20 } });
    const ask = (robloxUserId: number, atLeast?: unknown) =>
      app.post(`/v2/rank?placeid=${place}`, { key, body: { robloxUserId, rank: 20, atLeast } });
    const captain = 1001;
    await app.rank(await app.createKey(), { rankeeId: captain, newRankId: 50 });
    const kept = await ask(captain, true);
    expect(kept).toMatchObject({ status: 200, json: { oldRank: 50, newRank: 50, roleName: 'Captain' } });
    expect(messageOf(kept)).toMatch(/is already Captain/);
    expect(await app.heldBy(captain)).toContain(roles.captain);
    expect((await ask(1002, true)).json).toMatchObject({ success: true, newRank: 20 });
    expect(codeOf(await ask(1002, 'yes'))).toBe('invalid_request');
  });

  test('oldRankName of /v1/ranker is compared only with policy.stale: refuse, and only if it names a role', async () => {
    await using app = await openTestApp({ config: { policy: { stale: 'refuse' } } });
    const key = await app.createKey();
    for (const oldRankName of ['Officer', 'captain'])
      expect(codeOf(await app.rank(key, { oldRankName, newRankId: 50 }))).toBe('rank_differs');
    for (const [oldRankName, newRankId] of [
      ['Trainee', 20],
      ['Nothing that exists', 10],
      ['', 20],
      [undefined, 10],
    ])
      expect((await app.rank(key, { oldRankName, newRankId })).status).toBe(200);
    await using plain = await openTestApp();
    expect((await plain.rank(await plain.createKey(), { oldRankName: 'Captain', newRankId: 20 })).status).toBe(200);
  });
});

test('with policy.reason: required, a reason on /v2 or a command on /v1/ranker is enough', async () => {
  await using app = await openTestApp({ config: { policy: { reason: 'required' } } });
  const key = await app.createKey({ scopes: ['rank', 'suspend'] });
  const ask = (operation: string, rest: object) =>
    app.post(`/v2/${operation}?placeid=${place}`, { key, body: { robloxUserId: 1001, ...rest } });
  expect(codeOf(await ask('promote', { reason: ' ', command: ':promote' }))).toBe('reason_required');
  expect((await ask('promote', { reason: 'quiz' })).status).toBe(200);
  expect((await ask('suspend', { duration: '1h', reason: 'spam' })).status).toBe(200);
  expect(codeOf(await ask('unsuspend', {}))).toBe('reason_required');
  expect((await ask('unsuspend', { reason: 'appeal' })).status).toBe(200);
  expect(codeOf(await app.rank(key, { newRankId: 50, command: ' ' }))).toBe('reason_required');
  expect((await app.rank(key, { newRankId: 50, command: ':rank Captain' })).status).toBe(200);
});

describe('POST /v2/promote and /v2/demote', () => {
  test('give the next rank from the member’s current one, up to the end', async () => {
    const { platform, begun, release } = holdWrites();
    await using app = await openTestApp({ platform });
    const key = await app.createKey();
    const step = (operation: string) =>
      app.post(`/v2/${operation}?placeid=${place}`, { key, body: { robloxUserId: 1001 } });
    const first = step('promote');
    await begun;
    const second = step('promote'); // sent while the first change is in flight
    release();
    expect([(await first).json, (await second).json]).toMatchObject([
      { oldRank: 10, newRank: 20, roleName: 'Officer' },
      { oldRank: 20, newRank: 50 },
    ]);
    expect((await step('demote')).json).toMatchObject({ oldRank: 50, newRank: 20 });
    for (const rank of [10, 1, 1]) expect((await step('demote')).json).toMatchObject({ newRank: rank });
    expectError(await step('demote'), { status: 409, code: 'no_further_rank', error: 'No further rank' });
  });

  test('accept the same fields as a rank request, except for the rank', async () => {
    expect((await ask('promote', { username: 'Newcomer', reason: 'quiz', rank: 'ignored' })).status).toBe(200);
    expect(messageOf(await ask('demote', {}))).toBe('robloxUserId or username is missing.');
  });
});

describe('the place of a request', () => {
  const body = { robloxUserId: 1001, rank: 20 };
  const codes = async (requests: Array<[path: string, sent: Sent]>) =>
    Promise.all(requests.map(async ([path, sent]) => codeOf(await app.post(path, { body, ...sent })) ?? 'ok'));

  test("comes from the query, or else from the Roblox-Id header; a game's key requires one", async () => {
    const from = (id: string) => ({ headers: { 'roblox-id': id } });
    expect(
      await codes([
        [`/v2/rank?placeId=${place}`, { key }],
        ['/v2/rank', { key, ...from(String(place)) }],
        ['/v2/rank?placeid=', { key, ...from(String(place)) }],
        ['/v2/rank', { key, ...from('43') }],
        ['/v2/rank?placeid=43', { key, ...from(String(place)) }],
        ['/v2/rank', { key, ...from('x') }],
        ['/v2/rank', { key, ...from('0') }],
        ['/v2/rank', { key, ...from(`${place}, 43`) }],
        [`/v2/rank?placeid=43&placeid=${place}`, { key }],
        [`/v2/rank?placeid[]=${place}`, { key }],
        ['/v2/rank?placeid=0', { key, ...from(String(place)) }],
        ['/v2/rank', { key }],
        ['/v2/rank', {}],
        ['/v2/rank?placeid=x', {}],
      ]),
    ).toEqual([
      ...['ok', 'ok', 'ok', 'place_not_whitelisted', 'place_not_whitelisted', 'invalid_request'],
      ...['place_not_whitelisted', 'invalid_request', 'invalid_request', 'missing_placeid', 'place_not_whitelisted'],
      ...['missing_placeid', 'missing_authorization', 'invalid_request'],
    ]);
  });

  test('does not matter for a key for any place, although /v1 still requires one', async () => {
    const bot = await app.createKey({ name: 'bot', places: [], rules: { isAnyPlace: true } });
    expect(
      await codes([
        ['/v2/rank', { key: bot }],
        ['/v2/rank?placeid=7', { key: bot }],
      ]),
    ).toEqual(['ok', 'ok']);
    const [latest] = await app.store.listChanges({ limit: 1 });
    expect(latest).not.toHaveProperty('placeId', place);
    expect(codeOf(await app.post('/v1/ranker', { key: bot }))).toBe('missing_placeid');
    expect((await app.rank(bot)).status).toBe(200);
  });

  test('is not compared with Roblox-Id for a key for any place, even if that is enforced for games', async () => {
    await using app = await openTestApp({ config: { security: { robloxId: 'enforce' } } });
    const bot = await app.createKey({ name: 'bot', places: [], rules: { isAnyPlace: true } });
    const game = await app.createKey();
    const answers = [
      await app.post('/v2/rank', { key: bot, body }),
      await app.post('/v2/rank', { key: game, body, headers: { 'roblox-id': String(place) } }),
      await app.post(`/v2/rank?placeid=${place}`, { key: game, body }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 403]);
  });
});

describe('reads', () => {
  const get = (path: string, given = key) => send(`${app.url}/v2/${path}`, { key: given });

  test('return the roles of a member, by id or name, or that the user is not a member', async () => {
    await ask('rank', { robloxUserId: 1001, rank: 20 });
    const answer = await get(`member?robloxUserId=1001&placeid=${place}`);
    const officer = { rank: 20, roleId: roles.officer, roleName: 'Officer' };
    expect(answer.json).toEqual({
      ...{
        success: true,
        requestId: answer.headers['x-request-id'],
        robloxUserId: 1001,
        userName: 'Newcomer',
        inGroup: true,
        ...officer,
      },
      message: 'User 1001 is Officer (rank 20). (simulated group)',
      roles: [
        { id: roles.base, name: 'Member', rank: 1 },
        { id: roles.officer, name: 'Officer', rank: 20 },
      ],
      ...{ suspended: false, suspendedUntil: null },
    });
    expect((await get(`member?username=newcomer&placeid=${place}`)).json).toMatchObject({
      ...officer,
      robloxUserId: 1001,
    });
    expect((await get(`member?robloxUserId=4242&placeid=${place}`)).json).toMatchObject({
      ...{ inGroup: false, rank: 0, roleId: null, roleName: null, roles: [] },
    });
    expect(messageOf(await get(`member?placeid=${place}`))).toBe('robloxUserId or username is missing.');
    expect(codeOf(await get(`member?username=Builderman&placeid=${place}`))).toBe('user_renamed');
  });

  test('return the end of a member’s suspension', async () => {
    const endsAt = (Math.floor(app.app.clock.now() / 1000) + 3_600) * 1000;
    await suspend(app.app, 1005, endsAt);
    expect((await get(`member?robloxUserId=1005&placeid=${place}`)).json).toMatchObject({
      ...{ rank: 1, suspended: true, suspendedUntil: endsAt / 1000 },
    });
  });

  test('return the roles of the group, and which of them this key can give', async () => {
    const quiz = await app.createKey({ name: 'quiz', rules: { maxRank: 20, minRank: 10 } });
    const canGive = async (given: string) => {
      const { roles } = (await get(`roles?placeid=${place}`, given)).json as { roles: Record<string, unknown>[] };
      return roles.map(({ name, rank, canGive }) => `${rank} ${name}${canGive === true ? '' : ' no'}`);
    };
    expect(await canGive(quiz)).toEqual([
      ...['0 Guest no', '1 Member no', '1 Recruit no', '10 Trainee', '20 Officer'],
      ...['50 Captain no', '200 Admin no', '255 Owner no'],
    ]);
    expect(await canGive(key)).toContain('50 Captain');
  });

  test('return the workspace and its group, in the fields of Panora v2', async () => {
    const { id, name } = await app.store.getWorkspace();
    expect((await get(`workspace?placeid=${place}`)).json).toMatchObject({
      success: true,
      workspace: {
        ...{ workspaceId: id, name, discordGuildId: null, robloxGroupId: '1' },
        ...{ verified: true, affiliate: false, botType: 'custom' },
      },
    });
  });

  test('need a key with the scope verify, and a place', async () => {
    const rankOnly = await app.createKey({ name: 'rank-only', scopes: ['rank'] });
    expect(codeOf(await get(`roles?placeid=${place}`, rankOnly))).toBe('key_not_allowed');
    expect(codeOf(await get('roles'))).toBe('missing_placeid');
    expect(codeOf(await send(`${app.url}/v2/workspace`, {}))).toBe('missing_authorization');
  });

  test('do not exist for features that rankd lacks, and the response names them', async () => {
    expect(messageOf(await get('sessions'))).toContain('rankd has no sessions, applications or ranking centers');
  });
});

test('the key can be in X-Api-Key, which takes precedence over Authorization', async () => {
  const asked = (headers: Record<string, string>) =>
    send(`${app.url}/v2/rank?placeid=${place}`, { method: 'POST', headers, body: { robloxUserId: 1001, rank: 20 } });
  expect((await asked({ 'x-api-key': key })).status).toBe(200);
  expect((await asked({ 'x-api-key': ` ${key} `, authorization: 'Bearer nonsense' })).status).toBe(200);
  expect(codeOf(await asked({ 'x-api-key': 'nonsense' }))).toBe('invalid_key');
  expect(codeOf(await asked({ authorization: key }))).toBe('missing_authorization');
});

test('a repeat with the same Idempotency-Key gets the first response again; on another operation, it is a mismatch', async () => {
  await ask('rank', { robloxUserId: 1001, rank: 10 });
  const headers = { 'idempotency-key': 'v2' };
  const first = await ask('promote', { robloxUserId: 1001 }, { headers });
  const again = await ask('promote', { robloxUserId: 1001 }, { headers });
  expect(again.headers['idempotent-replayed']).toBe('true');
  expect({ ...Object(again.json), requestId: '' }).toEqual({ ...Object(first.json), requestId: '' });
  expect(codeOf(await ask('demote', { robloxUserId: 1001 }, { headers }))).toBe('idempotency_mismatch');
  expect(await app.heldBy(1001)).toContain(roles.officer);
});

test('an Idempotency-Key belongs to one request of one key; another body is a mismatch and changes nothing', async () => {
  await ask('rank', { robloxUserId: 1001, rank: 10 });
  const headers = { 'idempotency-key': 'one-request' };
  const first = await ask('rank', { robloxUserId: 1001, rank: 20 }, { headers });
  for (const body of [
    { robloxUserId: 1001, rank: 50 },
    { robloxUserId: 1001, rank: 'Officer' },
    { robloxUserId: 1005, rank: 20 },
    { robloxUserId: 1001, rank: 20, rankerId: 1003, rankerName: 'Builder' },
    { robloxUserId: 1001, rank: 20, reason: 'another' },
  ])
    expect([body, codeOf(await ask('rank', body, { headers }))]).toEqual([body, 'idempotency_mismatch']);
  expect(codeOf(await app.rank(key, { newRankId: 20 }, { headers }))).toBe('idempotency_mismatch');
  const other = await app.createKey({ name: 'another' });
  const others = await ask('rank', { robloxUserId: 1001, rank: 50 }, { headers, key: other });
  expect(others.json).toMatchObject({ success: true, newRank: 50 });
  expect(others.headers['x-rank-change']).not.toBe(first.headers['x-rank-change']);
  expect(await app.heldBy(1001)).toContain(roles.captain);
});

test('outside its scopes, a key changes nothing and learns nothing about the member', async () => {
  await ask('rank', { robloxUserId: 1001, rank: 10 });
  for (const [scopes, operations] of [
    [['verify'], ['rank', 'promote', 'demote', 'suspend', 'unsuspend']],
    [['rank'], ['suspend', 'unsuspend']],
    [['suspend'], ['rank', 'promote', 'demote']],
  ] as const) {
    const limited = await app.createKey({ name: `only-${scopes}`, scopes: [...scopes] });
    for (const operation of operations)
      for (const body of [{ robloxUserId: 1001, rank: 20, duration: '1h' }, { username: 'Nobody_At_All' }, 'no JSON']) {
        const answer = await ask(operation, body, { key: limited });
        expect([operation, answer.status, codeOf(answer)]).toEqual([operation, 403, 'key_not_allowed']);
      }
  }
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
});

test('oversized or malformed names and texts are invalid requests', async () => {
  for (const body of [
    { username: 'x'.repeat(60_000), rank: 20 },
    { username: 'Newcomer\u0000', rank: 20 },
    { username: ['Newcomer'], rank: 20 },
    { username: 'Nеwcomer', rank: 20 }, // the second letter is Cyrillic
    { robloxUserId: 1001, rank: 'x'.repeat(1_001) },
    { robloxUserId: 1001, rank: { toString: 'Officer' } },
    { robloxUserId: 1001, rank: 20, rankerId: 2 ** 53 },
    { robloxUserId: '1001 or 1=1', rank: 20 },
    { robloxUserId: 1e21, rank: 20 },
  ]) {
    const answer = await ask('rank', body);
    expect([answer.status, codeOf(answer)]).toEqual([400, 'invalid_request']);
    expect(Buffer.byteLength(answer.text)).toBeLessThan(1_024);
  }
  const inherited = await ask('rank', '{"__proto__":{"robloxUserId":1001,"rank":20}}');
  expect(codeOf(inherited)).toBe('invalid_request');
});

test('a test key gets the outcome of a real change, and changes nothing', async () => {
  const trial = await app.createKey({ name: 'trial', mode: 'test' });
  await ask('rank', { robloxUserId: 1001, rank: 10 });
  expect((await ask('promote', { robloxUserId: 1001 }, { key: trial })).json).toMatchObject({
    message: expect.stringMatching(/^Test key, nothing changed: Member 1001 is now Officer/),
    ...{ oldRank: 10, newRank: 20 },
  });
  expect(await app.heldBy(1001)).toContain(roles.trainee);
});
