import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { publicCodes, statuses } from '../../src/http/errors.ts';
import type { GameAnswer, GameScript, GameWorld } from './game.ts';
import { applied, inTurn, openScene, type Result, rankdModule, refused, secret, source } from './scene.ts';

const promoteAnn =
  'return rankd:promote({ rankee = Players.Ann, ranker = Players.Bob, reason = "quiz", command = ":promote" })';

describe('a change that rankd makes', () => {
  test('is reported with its rank, change id and request id, and names the player who requested it', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    expect(await scene.run(promoteAnn)).toEqual({
      ...{ ok: true, isKnown: true, code: 'ok', message: '1001 is Officer.', status: 200, attempts: 1 },
      ...{ rankeeId: 1001, rank: 20, requestId: 'req_1', changeId: 'chg_1' },
    });
    const [request] = scene.game.requests;
    expect(request).toMatchObject({
      url: 'https://rankd.example.com/v2/promote?placeid=1',
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      timeout: 25,
    });
    expect(JSON.parse(request?.body ?? '')).toEqual({
      ...{ robloxUserId: 1001, rankeeName: 'Ann', rankerId: 1002, rankerName: 'Bob' },
      ...{ reason: 'quiz', command: ':promote' },
    });
  });

  test.each([
    ['rankd:setRank({ rankee = 1001, rank = 20 })', 'rank', 20],
    ['rankd:setRank({ rankee = 1001, rank = " 20 " })', 'rank', 20],
    ['rankd:setRank({ rankee = 1001, rank = "Senior Officer" })', 'rank', 'Senior Officer'],
    ['rankd:setRank({ rankee = 1001, rank = 98765432101 })', 'rank', 98_765_432_101],
    ['rankd:demote({ rankee = "1001" })', 'demote', undefined],
  ])('%s sends that change', async (call, operation, rank) => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    expect(await scene.run(`return ${call}`)).toMatchObject({ ok: true });
    const [{ url = '', body = '' } = {}] = scene.game.requests;
    expect(url).toBe(`https://rankd.example.com/v2/${operation}?placeid=1`);
    expect(JSON.parse(body)).toEqual({ robloxUserId: 1001, rankeeName: 'Ann', rank });
  });

  test('is set on the player and reported to every listener, unless a test key made it', async () => {
    const testKey = { message: 'Test key, nothing changed: 1002 would be Officer.' };
    await using scene = await openScene({
      serve: (request) => (request.body.includes('1002') ? applied(request, testKey) : applied(request)),
    });
    const seen = await scene.run<unknown>(`
      local told = {}
      local connection = rankd.changed:Connect(function(id, rank, result)
        table.insert(told, { id, rank, result.code })
      end)
      rankd.changed:Connect(function() error("a listener of the game fails") end)
      rankd:promote({ rankee = Players.Ann })
      rankd:promote({ rankee = Players.Bob })
      connection:Disconnect()
      rankd:promote({ rankee = Players.Cid })
      return { told, Players.Ann:GetAttribute("RankdRank"), Players.Bob:GetAttribute("RankdRank") or "none" }`);
    expect(seen).toEqual([[[1001, 20, 'ok']], 20, 'none']);
    expect(scene.game.output.join('\n')).toContain('a listener of the game fails');
  });

  test('is reported with its ids whatever the case of header names behind a proxy', async () => {
    const headers = { 'X-Request-Id': 'req_1', 'X-Rank-Change': 'chg_1' };
    await using scene = await openScene({ serve: (request) => ({ ...applied(request), headers }) });
    expect(await scene.run(promoteAnn)).toMatchObject({ requestId: 'req_1', changeId: 'chg_1' });
  });

  test('never depends on ranks cached by the game', async () => {
    await using scene = await openScene({ serve: (request) => applied(request), ranks: { 1001: 200 } });
    await scene.run(promoteAnn);
    expect(scene.game.requests.map(({ body }) => body).join()).not.toMatch(/"(rank|newRank|oldRank)"/);
  });
});

describe('attempts', () => {
  test('of one change share an Idempotency-Key; each change has a different one', async () => {
    const lost = { raise: 'HttpError: NetFail' };
    await using scene = await openScene({
      serve: inTurn(lost, refused(503, 'platform_busy', { retryAfter: 2 }), applied, applied),
    });
    expect(await scene.run(promoteAnn)).toMatchObject({ ok: true, isKnown: true, attempts: 3 });
    await scene.run(promoteAnn);
    const keys = scene.headers('idempotency-key');
    expect(keys).toHaveLength(4);
    expect(new Set(keys.slice(0, 3)).size).toBe(1);
    expect(keys[3]).not.toBe(keys[0]);
    expect(new Set(scene.game.requests.slice(0, 3).map(({ body }) => body)).size).toBe(1);
  });

  test('are limited to five, with growing backoff', async () => {
    await using scene = await openScene({ serve: () => ({ raise: 'HttpError: ConnectFail' }) });
    const result = await scene.run(promoteAnn);
    expect(result).toMatchObject({ ok: false, isKnown: true, code: 'no_answer', attempts: 5, status: 0 });
    const waits = scene.game.requests.map(({ at }, index, all) => at - (all[index - 1]?.at ?? 0)).slice(1);
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(0.8 * 2 ** index);
      expect(wait).toBeLessThanOrEqual(1.2 * 2 ** index + 0.1);
    }
  });

  test('end after 60 seconds, even if no server responds', async () => {
    await using scene = await openScene({ serve: () => new Promise<GameAnswer>(() => undefined) });
    const result = await scene.run(promoteAnn);
    expect(result).toMatchObject({ ok: false, isKnown: false, code: 'no_answer' });
    expect(result.message).toContain('not known');
    expect(scene.game.now).toBeLessThanOrEqual(60.2);
    expect(scene.game.requests.length).toBeGreaterThan(1);
  });

  test('wait as long as rankd asks, and end at once if that is too long', async () => {
    await using scene = await openScene({ serve: inTurn(refused(429, 'too_many_requests', { retryAfter: 90 })) });
    expect(await scene.run(promoteAnn)).toMatchObject({
      ...{ ok: false, isKnown: true, code: 'too_many_requests', retryAfter: 90, attempts: 1 },
    });
    expect(scene.game.now).toBeLessThan(1);
  });

  test('end with an unknown outcome if the first may have reached rankd and the later ones are rejected', async () => {
    const away = refused(401, 'invalid_key');
    await using scene = await openScene({ serve: inTurn({ raise: 'HttpError: Timedout' }, away) });
    const result = await scene.run(promoteAnn);
    expect(result).toMatchObject({ ok: false, isKnown: false, code: 'no_answer', attempts: 2 });
    expect(result.message).toContain('rankd says invalid_key');
  });

  test('end with a known outcome if rankd decides after a lost response', async () => {
    await using scene = await openScene({
      serve: inTurn({ raise: 'HttpError: Timedout' }, refused(403, 'rank_not_allowed')),
    });
    expect(await scene.run(promoteAnn)).toMatchObject({ isKnown: true, code: 'rank_not_allowed', attempts: 2 });
  });
});

/** Codes after which the module retries. */
const again = new Set(publicCodes.filter((code) => [500, 503, 504].includes(statuses[code])));
again.add('too_many_requests').add('idempotency_in_progress');
/** Codes after which the outcome is unknown. */
const open = new Set(['internal', 'outcome_unknown', 'idempotency_in_progress']);

describe('a failure is returned as a Result with a sentence:', () => {
  test.each(publicCodes)('the refusal %s', async (code) => {
    await using scene = await openScene({ serve: () => refused(statuses[code], code) });
    expect(await scene.run(promoteAnn)).toMatchObject({
      ...{ ok: false, code, status: statuses[code], attempts: again.has(code) ? 5 : 1, isKnown: !open.has(code) },
      ...{ message: `rankd says ${code}.`, requestId: 'req_2', rankeeId: 1001 },
    });
  });

  const html = '<html><body>Bad gateway</body></html>';
  test.each<[string, GameAnswer, Partial<Result>]>([
    ["a proxy's page with 200", { status: 200, body: html }, { code: 'not_rankd', attempts: 1, status: 200 }],
    ["a proxy's page with 404", { status: 404, body: html }, { code: 'not_rankd', attempts: 1, status: 404 }],
    ["a proxy's page with 429", { status: 429, body: html }, { code: 'not_rankd', attempts: 1 }],
    ["a proxy's page with 502", { status: 502, body: html }, { code: 'no_answer', attempts: 5, isKnown: false }],
    ["a proxy's page with 524", { status: 524, body: html }, { code: 'no_answer', attempts: 5, isKnown: false }],
    ['an empty body', { status: 200, body: '' }, { code: 'not_rankd' }],
    ['nan', { status: 200, body: 'nan' }, { code: 'not_rankd' }],
    ['null', { status: 200, body: 'null' }, { code: 'not_rankd' }],
    ['a list', { status: 200, body: '[true]' }, { code: 'not_rankd' }],
    ['success with another status', { status: 201, body: '{"success":true}' }, { code: 'not_rankd' }],
    ['no success with 200', { status: 200, body: '{"success":false,"code":"x"}' }, { code: 'not_rankd' }],
    ['a refusal without a code', { status: 403, body: '{"success":false}' }, { code: 'not_rankd' }],
    ['1 MB of text', { status: 200, body: 'x'.repeat(1e6) }, { code: 'not_rankd' }],
    [
      '1 MB of JSON',
      {
        status: 403,
        body: JSON.stringify({ success: false, code: 'c'.repeat(5e5), message: 'one two é '.repeat(1e5) }),
      },
      { ok: false },
    ],
  ])('%s', async (_, answer, expected) => {
    await using scene = await openScene({ serve: () => answer });
    const result = await scene.run(promoteAnn);
    expect(result).toMatchObject({ ok: false, ...expected });
    expect(result.message).toMatch(/\w+ \w+/);
    expect(Buffer.byteLength(result.message)).toBeLessThan(500);
    expect(result.message).not.toContain('\ufffd');
  });

  test.each<[string, Partial<Result>, RegExp]>([
    [
      'HttpError: DnsResolve',
      { isKnown: true, attempts: 5 },
      /^The host name rankd\.example\.com could not be resolved/,
    ],
    ['HttpError: ConnectFail', { isKnown: true, attempts: 5 }, /^rankd\.example\.com does not accept connections/],
    ['HttpError: SslConnectFail', { isKnown: true, attempts: 5 }, /encrypted connection/],
    [
      'HttpError: SslVerificationFail',
      { isKnown: true, attempts: 1 },
      /^Roblox does not accept rankd\.example\.com's certificate: .*expired/,
    ],
    ['HttpError: TooManyOutstandingRequests', { isKnown: true, attempts: 5 }, /too many requests in flight/],
    ['HttpError: InvalidUrl', { code: 'invalid_argument', isKnown: true, attempts: 1 }, /check the url/],
    [
      'HttpService is not allowed to access ROBLOX resources',
      { code: 'invalid_argument', isKnown: true, attempts: 1 },
      /belongs to Roblox.*check the url/,
    ],
    ['Header "x" is not allowed!', { code: 'invalid_argument', isKnown: true, attempts: 1 }, /headers/],
    ['Http requests can only be executed by game server', { code: 'not_server', isKnown: true, attempts: 1 }, /server/],
    [
      'HttpError: NetFail',
      { isKnown: false, attempts: 5 },
      /not known whether the rank was changed\. rankd\.example\.com did not respond/,
    ],
    ['HttpError: Timedout', { isKnown: false, attempts: 5 }, /rankd\.example\.com did not respond in time/],
    ['HttpError: Aborted', { isKnown: false, attempts: 5 }, /not known/],
    [
      'Http requests are not enabled. Enable via game settings',
      { code: 'http_disabled', isKnown: true, attempts: 1 },
      /Allow HTTP Requests/,
    ],
    ['Number of requests exceeded limit', { isKnown: true, attempts: 2 }, /sent too many requests/],
  ])(
    'RequestAsync raises "%s": the result names the cause, and so does the output, once',
    async (raise, expected, why) => {
      await using scene = await openScene({ serve: () => ({ raise }) });
      const result = await scene.run(promoteAnn);
      expect(result).toMatchObject({ ok: false, code: 'no_answer', ...expected });
      expect(result.message).toMatch(why);
      expect(scene.game.now).toBeLessThanOrEqual(60.2);
      await scene.run('return rankd:promote({ rankee = Players.Cid })');
      expect(scene.game.output.filter((line) => line.startsWith('warn rankd: '))).toHaveLength(1);
    },
  );

  test.each<[string, string]>([
    ['verify()', 'verify'],
    ['getMember(1001)', 'a member'],
    ['getRoles()', 'the roles'],
  ])('%s changes nothing, and its message never mentions a change', async (call) => {
    for (const answer of [
      { raise: 'HttpError: Timedout' },
      { status: 502, body: '<html>' },
      refused(500, 'internal'),
      refused(504, 'outcome_unknown'),
    ]) {
      await using scene = await openScene({ serve: () => answer });
      const result = await scene.run(`return rankd:${call}`);
      expect(result).toMatchObject({ ok: false, isKnown: true });
      expect(result.message).not.toMatch(/changed|rank /);
    }
  });

  test('a bot check by Cloudflare is reported as such', async () => {
    const answer = { status: 403, body: '<html>Just a moment…', headers: { 'CF-Mitigated': 'challenge' } };
    await using scene = await openScene({ serve: () => answer });
    const result = await scene.run(promoteAnn);
    expect(result).toMatchObject({ code: 'not_rankd', isKnown: true, attempts: 1 });
    expect(result.message).toMatch(/Cloudflare.*only admits browsers/);
  });

  test.each<[string, GameWorld, Partial<Result>]>([
    ['HTTP is disabled', { isHttpEnabled: false }, { code: 'http_disabled', isKnown: true }],
    ['the secret is missing', { secrets: {} }, { code: 'no_secret', attempts: 0 }],
    ['the place is not published', { placeId: 0 }, { code: 'unpublished_place', attempts: 0 }],
    ['it runs on a client', { isClient: true }, { code: 'not_server', attempts: 0 }],
  ])('%s', async (_, world, expected) => {
    await using scene = await openScene({ serve: (request) => applied(request), ...world });
    const result = await scene.run(promoteAnn);
    expect(result).toMatchObject({ ok: false, ...expected });
    expect(result.message).toMatch(/^[A-Z].{20,}[.:]/);
    expect(scene.game.requests).toEqual([]);
  });

  test('arbitrary responses, statuses and headers', async () => {
    const json = fc.json({ maxDepth: 4 });
    const near = fc
      .record(
        Object.fromEntries(
          ['success', 'code', 'message', 'newRank', 'retryAfter', 'error'].map((name) => [name, fc.jsonValue()]),
        ),
        { requiredKeys: [] },
      )
      .map((body) => JSON.stringify(body));
    const answer = fc.oneof(
      fc.record({
        status: fc.constantFrom(0, 100, 200, 200, 204, 301, 400, 403, 429, 500, 502, 503, 504, 599),
        body: fc.oneof(json, near, fc.string({ unit: 'binary' })),
        headers: fc.constantFrom({}, { 'x-request-id': 'r' }),
      }),
      fc.record({ raise: fc.string() }),
    );
    const answers = fc.sample(answer, { numRuns: 150, seed: 20_261_123 });
    await using scene = await openScene({
      serve: ({ body }) => answers[(JSON.parse(body) as { robloxUserId: number }).robloxUserId - 1] ?? { raise: 'x' },
    });
    const results = await scene.run<Result[]>(
      `
      rankd = Rankd.new({ url = "https://fast.example.com", requestsPerMinute = 100000 })
      local changes = {}
      for id = 1, given do
        changes[id] = { rankee = id }
      end
      return rankd:many("promote", changes)`,
      answers.length,
    );
    expect(results).toHaveLength(answers.length);
    for (const [index, result] of results.entries()) {
      expect(result, JSON.stringify(answers[index])).toMatchObject({ rankeeId: index + 1, ok: expect.any(Boolean) });
      expect(result.message).toMatch(/./u);
    }
    expect(scene.game.output.filter((line) => !line.startsWith('warn rankd: '))).toEqual([]);
  });
});

describe('invalid arguments are returned as a Result:', () => {
  test('a value that is not a function is never called, and blocks nothing', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const results = await scene.run<Result[]>(`
      rankd.changed:Connect(5):Disconnect()
      rankd.changed:Connect("no function")
      local results = rankd:many("promote", { { rankee = 1001 }, { rankee = 1002 }, { rankee = 1001 } }, 5)
      table.insert(results, rankd:promote({ rankee = 1003 }))
      return results`);
    expect(results.map(({ code }) => code)).toEqual(Array(4).fill('ok'));
    expect(scene.game.output).toEqual(Array(2).fill(expect.stringContaining('changed needs a function')));
  });

  test('a table that raises when it is read is returned as a Result, and the next call still works', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const results = await scene.run<Result[]>(`
      local odd = setmetatable({}, { __index = function(_, name) if name == "rankee" then error("odd") end end })
      return { rankd:promote(odd), rankd:promote({ rankee = 1001 }) }`);
    expect(results.map(({ code }) => code)).toEqual(['invalid_argument', 'ok']);
  });

  test.each([
    ['rankd:promote()', 'invalid_argument'],
    ['rankd:promote(5)', 'invalid_argument'],
    ['rankd:promote({})', 'invalid_argument'],
    ['rankd.promote({ rankee = 1001 })', 'invalid_argument'],
    ['rankd:promote({ rankee = {} })', 'invalid_argument'],
    ['rankd:promote({ rankee = 0 })', 'invalid_argument'],
    ['rankd:promote({ rankee = -1 })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1.5 })', 'invalid_argument'],
    ['rankd:promote({ rankee = 0/0 })', 'invalid_argument'],
    ['rankd:promote({ rankee = math.huge })', 'invalid_argument'],
    ['rankd:promote({ rankee = workspace })', 'invalid_argument'],
    ['rankd:promote({ rankee = "" })', 'unknown_user'],
    ['rankd:promote({ rankee = "no one" })', 'unknown_user'],
    ['rankd:promote({ rankee = "x\\0" })', 'unknown_user'],
    ['rankd:promote({ rankee = "Nobody" })', 'unknown_user'],
    ['rankd:promote({ rankee = 1001, ranker = {} })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, ranker = "Nobody" })', 'unknown_user'],
    ['rankd:promote({ rankee = 1001, reason = {} })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, reason = "\\xff" })', 'invalid_argument'],
    ['rankd:promote(setmetatable({}, { __index = error }))', 'invalid_argument'],
    ['rankd:setRank({ rankee = 1001 })', 'invalid_argument'],
    ['rankd:setRank({ rankee = 1001, rank = "" })', 'invalid_argument'],
    ['rankd:setRank({ rankee = 1001, rank = 1.5 })', 'invalid_argument'],
    ['rankd:setRank({ rankee = 1001, rank = {} })', 'invalid_argument'],
    ['rankd:many("explode", {})[1]', 'invalid_argument'],
    ['rankd:many("promote")[1]', 'invalid_argument'],
    ['rankd:many("promote", { 5 })[1]', 'invalid_argument'],
    ['rankd.many()[1]', 'invalid_argument'],
    ['rankd:setRank({ rankee = 1001, rank = 5, atLeast = "yes" })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, atLeast = true })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, ifRank = {} })', 'invalid_argument'],
    ['rankd:unsuspend({ rankee = 1001, ifRank = 5 })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, once = "" })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, once = "\\n" })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, once = ("x"):rep(101) })', 'invalid_argument'],
    ['rankd:promote({ rankee = 1001, once = {} })', 'invalid_argument'],
    ['rankd:getMember()', 'invalid_argument'],
    ['rankd:getMember("Nobody")', 'unknown_user'],
    ['Rankd.new():getMember(1001)', 'invalid_argument'],
    ['Rankd.new():getRoles()', 'invalid_argument'],
    ['Rankd.new():many("promote", { {}, {} })[2]', 'invalid_argument'],
    ['Rankd.new():promote({ rankee = 1001 })', 'invalid_argument'],
    ['Rankd.new("https://x.example"):promote({ rankee = 1001 })', 'invalid_argument'],
    ['Rankd.new({ url = "https://x.example", placeId = "x" }):promote({ rankee = 1001 })', 'invalid_argument'],
    ['Rankd.new({ url = "https://x.example", key = "rk\\nx" }):promote({ rankee = 1001 })', 'no_secret'],
    ['Rankd.new({ url = "https://x.example", key = 5 }):promote({ rankee = 1001 })', 'no_secret'],
    ['Rankd.new({ url = "https://x.example", secret = "other" }):promote({ rankee = 1001 })', 'no_secret'],
  ])('%s', async (call, code) => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const result = await scene.run(`return ${call}`);
    expect(result).toMatchObject({ ok: false, isKnown: true, code, attempts: 0 });
    expect(result.message).toMatch(/\w \w.*/);
    expect(scene.game.requests).toEqual([]);
  });

  test('a Studio test player is reported as an unknown user', async () => {
    await using scene = await openScene({
      serve: (request) => applied(request),
      players: [{ id: -1, name: 'Player1' }],
    });
    const result = await scene.run('return rankd:promote({ rankee = Players.Player1 })');
    expect(result).toMatchObject({ code: 'unknown_user', message: expect.stringContaining('Studio') });
  });
});

describe('the address', () => {
  test.each([
    ['rankd.example.com', 'https://rankd.example.com'],
    ['  https://rankd.example.com/  ', 'https://rankd.example.com'],
    ['HTTPS://rankd.example.com/v1/ranker?placeid=1', 'https://rankd.example.com'],
    ['https://example.com:8443/rankd/', 'https://example.com:8443/rankd'],
    ['https://example.com/rankd/v1/', 'https://example.com/rankd'],
    ['http://localhost:7265', 'http://localhost:7265'],
    ['http://127.0.0.1:7265/', 'http://127.0.0.1:7265'],
  ])('"%s" is read as %s', async (url, base) => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    await scene.run('return Rankd.new({ url = given }):promote({ rankee = 1001 })', url);
    expect(scene.game.requests.map((request) => request.url)).toEqual([`${base}/v2/promote?placeid=1`]);
  });

  test.each([
    ['http://rankd.example.com', 'insecure_url'],
    ['http://localhost.example.com', 'insecure_url'],
    ['http://localhost@example.com', 'invalid_argument'],
    ['http://localhost:80@example.com', 'invalid_argument'],
    ['ftp://rankd.example.com', 'invalid_argument'],
    ['https://', 'invalid_argument'],
    ['https://exa mple.com', 'invalid_argument'],
    ['https://example.com/a\nb', 'invalid_argument'],
    ['', 'invalid_argument'],
    ['   ', 'invalid_argument'],
  ])('"%s" is refused at each call', async (url, code) => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    expect(await scene.run('return Rankd.new({ url = given }):verify()', url)).toMatchObject({ ok: false, code });
    expect(scene.game.requests).toEqual([]);
  });
});

test.each([
  ['that is not Luau', 'return { url = '],
  ['that raises', 'error("a mistake of the owner")'],
  ['that does not return a table', 'return 5'],
])('a Config module %s is reported by each call, unless a script gives the address', async (_, config) => {
  await using scene = await openScene({
    serve: (request) => applied(request),
    scripts: [rankdModule, { class: 'ModuleScript', path: [...rankdModule.path, 'Config'], source: config }],
  });
  expect(await scene.run('return Rankd.new():promote({ rankee = 1001 })')).toMatchObject({
    ...{ ok: false, isKnown: true, code: 'invalid_argument', message: expect.stringContaining('Config') },
  });
  expect(await scene.run('return rankd:promote({ rankee = 1001 })')).toMatchObject({ ok: true });
});

test.each([
  ['ServerScriptService', {}],
  ['ServerStorage', { RankdConfig: 'ServerStorage/RankdConfig' }],
])('a package finds its settings in the RankdConfig in %s', async (place, tags) => {
  await using scene = await openScene({
    serve: (request) => applied(request),
    tags,
    scripts: [
      rankdModule,
      { class: 'ModuleScript', path: [place, 'RankdConfig'], source: 'return { url = "https://packed.example.com" }' },
    ],
  });
  expect(await scene.run('return Rankd.new():promote({ rankee = 1001 })')).toMatchObject({ ok: true });
  expect(scene.game.requests[0]?.url).toContain('https://packed.example.com/');
});

describe('verify', () => {
  test('reports that rankd responds and the key is valid', async () => {
    await using scene = await openScene({ serve: () => ({ status: 200, body: '"ws_1"' }) });
    expect(await scene.run('return rankd:verify()')).toMatchObject({
      ok: true,
      message: expect.stringContaining('ws_1'),
    });
    const [request] = scene.game.requests;
    expect(request).toMatchObject({ url: 'https://rankd.example.com/v1/apikey', body: '{"placeid":1}' });
  });

  test.each<[GameAnswer, string, number]>([
    [{ status: 200, body: '{"success":true}' }, 'not_rankd', 1],
    [{ status: 200, body: '<html>' }, 'not_rankd', 1],
    [refused(403, 'place_not_whitelisted'), 'place_not_whitelisted', 1],
    [refused(503, 'shutting_down'), 'shutting_down', 5],
  ])('with the response %o returns %s', async (answer, code, attempts) => {
    await using scene = await openScene({ serve: () => answer });
    expect(await scene.run('return rankd:verify()')).toMatchObject({ ok: false, code, attempts });
  });
});

describe('names', () => {
  test('are looked up once in five minutes, and the id is sent', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    await scene.run('for _ = 1, 3 do rankd:promote({ rankee = "Offline" }) end return true');
    expect(scene.game.requests.map(({ body }) => JSON.parse(body).robloxUserId)).toEqual([2001, 2001, 2001]);
    await scene.game.change({ users: { offline: 2002 } });
    const [before, after] = await scene.run<Result[]>(`
      local first = rankd:promote({ rankee = "@Offline" })
      task.wait(301)
      return { first, rankd:promote({ rankee = "offline" }) }`);
    expect([before?.rankeeId, after?.rankeeId]).toEqual([2001, 2002]);
  });

  test('that do not exist are reported in plain words, with any other message from Roblox', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const call = 'return rankd:promote({ rankee = "Nobody" })';
    expect((await scene.run(call)).message).toBe('The user Nobody was not found.');
    await scene.game.change({ namesRaise: 'HTTP 503 (Service Unavailable)' });
    expect((await scene.run(call)).message).toBe(
      'The user Nobody could not be looked up; Roblox reports: HTTP 503 (Service Unavailable).',
    );
  });

  test('of players in this server need no lookup', async () => {
    await using scene = await openScene({ serve: (request) => applied(request), users: {} });
    expect(await scene.run('return rankd:promote({ rankee = "ann" })')).toMatchObject({ ok: true, rankeeId: 1001 });
  });
});

describe('the queue', () => {
  const slow = (seconds: number) => async (scene: { clock: { sleep(ms: number): Promise<void> } }) =>
    scene.clock.sleep(seconds * 1000);

  test('makes one member’s changes in order and never at once, and those of different members four at a time', async () => {
    const running = new Set<number>();
    let overlaps = 0;
    await using scene = await openScene({
      serve: async (request) => {
        const { robloxUserId } = JSON.parse(request.body) as { robloxUserId: number };
        if (running.has(robloxUserId)) overlaps += 1;
        running.add(robloxUserId);
        await slow(2)(scene);
        running.delete(robloxUserId);
        return applied(request);
      },
    });
    await scene.run(`
      local changes = {}
      for index = 1, 12 do
        changes[index] = { rankee = if index % 2 == 0 then "Offline" else 3000 + index, rank = 100 + index }
      end
      rankd:many("setRank", changes)
      return true`);
    const ranks = scene.game.requests.map(({ body }) => JSON.parse(body) as { robloxUserId: number; rank: number });
    expect(ranks.filter(({ robloxUserId }) => robloxUserId === 2001).map(({ rank }) => rank)).toEqual([
      102, 104, 106, 108, 110, 112,
    ]);
    expect(overlaps).toBe(0);
    expect(scene.game.maxInFlight).toBe(4);
  });

  test('preserves that order even while the first change is retried', async () => {
    await using scene = await openScene({
      serve: inTurn({ raise: 'HttpError: ConnectFail' }, applied),
    });
    await scene.run(`
      rankd:many("setRank", { { rankee = 1001, rank = 10 }, { rankee = 1001, rank = 20 } })
      return true`);
    expect(scene.game.requests.map(({ body }) => JSON.parse(body).rank)).toEqual([10, 10, 20]);
  });

  test('pauses all of its requests for as long as rankd asks', async () => {
    await using scene = await openScene({
      serve: inTurn(refused(429, 'too_many_requests', { retryAfter: 17 }), applied),
    });
    const results = await scene.run<Result[]>(`
      rankd = Rankd.new({ url = "https://slow.example.com", maxInFlight = 1 })
      local changes = {}
      for id = 1, 20 do
        changes[id] = { rankee = id }
      end
      return rankd:many("promote", changes)`);
    expect(results.every(({ ok }) => ok)).toBe(true);
    const [first, ...others] = scene.game.requests;
    expect(Math.min(...others.map(({ at }) => at)) - (first?.at ?? 0)).toBeGreaterThanOrEqual(17);
  });

  test('respects the limit of requests per minute', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    await scene.run(`
      local changes = {}
      for id = 1, 200 do
        changes[id] = { rankee = id }
      end
      rankd:many("promote", changes)
      return true`);
    const times = scene.game.requests.map(({ at }) => at);
    expect(times).toHaveLength(200);
    expect(times.filter((at) => at < 59.9)).toHaveLength(120);
    expect(scene.game.now).toBeLessThan(62);
  });

  test('waits half a minute if the game server has sent too many other requests', async () => {
    await using scene = await openScene({
      serve: inTurn({ raise: 'Number of requests exceeded limit' }, applied),
    });
    expect(await scene.run(promoteAnn)).toMatchObject({ ok: true, attempts: 2 });
    expect(scene.game.requests[1]?.at).toBeGreaterThanOrEqual(30);
  });

  test('accepts 200 single calls and refuses the next one at once, while `many` waits for room', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const [single, all] = await scene.run<[Result[], Result[]]>(`
      local results = {}
      for id = 1, 203 do
        task.spawn(function()
          results[id] = rankd:promote({ rankee = id })
        end)
      end
      local changes = {}
      for id = 1, 250 do
        changes[id] = { rankee = 1000 + id }
      end
      local all = rankd:many("promote", changes)
      return { results, all }`);
    expect(single.filter(({ ok }) => ok)).toHaveLength(200);
    expect(single.slice(200).map(({ code, isKnown, attempts }) => ({ code, isKnown, attempts }))).toEqual(
      Array(3).fill({ code: 'queue_full', isKnown: true, attempts: 0 }),
    );
    expect(all.map(({ rankeeId, code }) => [rankeeId, code])).toEqual(all.map((_, index) => [1001 + index, 'ok']));
    expect(all).toHaveLength(250);
  });

  test('accepts a single call while many changes wait, so that a command can still read the roles', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const result = await scene.run(`
      local changes = {}
      for id = 1, 250 do
        changes[id] = { rankee = 1000 + id }
      end
      task.spawn(rankd.many, rankd, "promote", changes)
      return rankd:getRoles()`);
    expect(result).toMatchObject({ ok: true, code: 'ok' });
  });

  test('a cancelled caller does not affect others, whether it waits for one change or for many', async () => {
    await using scene = await openScene({
      serve: async (request) => {
        await slow(2)(scene);
        return applied(request);
      },
    });
    const codes = await scene.run<string[]>(`
      local one = task.spawn(function() rankd:promote({ rankee = 1 }) end)
      local several = task.spawn(function() rankd:many("promote", { { rankee = 2 }, { rankee = 3 } }) end)
      task.wait(1)
      task.cancel(one)
      task.cancel(several)
      local codes = { rankd:promote({ rankee = 2 }).code }
      for _, result in rankd:many("promote", { { rankee = 1 }, { rankee = 3 } }) do
        table.insert(codes, result.code)
      end
      return codes`);
    expect(codes).toEqual(['ok', 'ok', 'ok']);
    expect(scene.game.output).toEqual([]);
  });

  test('reports each result as soon as it is known, and returns a list in the same order', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const [results, told] = await scene.run<[Result[], number[]]>(`
      local told = {}
      local results = rankd:many("promote", { { rankee = "Offline" }, { rankee = -5 }, { rankee = 7 } }, function(result)
        table.insert(told, result.rankeeId or 0)
        error("the game's own function fails")
      end)
      return { results, told }`);
    expect(results.map(({ code }) => code)).toEqual(['ok', 'invalid_argument', 'ok']);
    expect(told.toSorted()).toEqual([0, 2001, 7].toSorted());
  });

  const closing = (changes: number) => `
    local Rankd = require(game:GetService("ServerScriptService").Rankd)
    local rankd = Rankd.new({ url = "https://rankd.example.com" })
    local changes = {}
    for id = 1, ${changes} do
      changes[id] = { rankee = 3000 + id }
    end
    return rankd:many("promote", changes)`;

  test('is emptied before the server closes: 60 changes of a second each are all made', async () => {
    await using scene = await openScene({
      serve: async (request) => {
        await slow(1)(scene);
        return applied(request);
      },
    });
    const results = scene.game.run<Result[]>(closing(60));
    await scene.clock.advance(500);
    const closed = scene.game.close().then(() => scene.game.now);
    expect((await scene.clock.passUntil(results)).map(({ code }) => code)).toEqual(Array(60).fill('ok'));
    expect(await scene.clock.passUntil(closed)).toBeLessThan(16.5);
    expect(scene.game.output).toEqual([]);
  });

  test('reports every change that was not made within 25 seconds, and those that may have been made as unknown', async () => {
    await using scene = await openScene({
      serve: async (request) => {
        await slow(6)(scene);
        return applied(request);
      },
    });
    const results = scene.game.run<Result[]>(closing(30));
    await scene.clock.advance(500);
    const closed = scene.game.close().then(() => scene.game.now);
    const found = await scene.clock.passUntil(results);
    expect(await scene.clock.passUntil(closed)).toBeLessThan(26);
    const closedOnes = found.filter(({ code }) => code === 'server_closing');
    expect(found.filter(({ ok }) => ok)).toHaveLength(16);
    expect(closedOnes).toHaveLength(14);
    expect(closedOnes.filter(({ isKnown }) => !isKnown)).toHaveLength(4);
    expect(scene.game.output).toHaveLength(14);
    for (const [index, line] of scene.game.output.entries())
      expect(line).toMatch(
        new RegExp(`^warn rankd: .*"promote 30${17 + index}".*${index < 4 ? 'not known' : 'nothing was changed'}`),
      );
    expect(await scene.run('return rankd:promote({ rankee = 1 })')).toMatchObject({
      code: 'server_closing',
      attempts: 0,
    });
  });

  test('never delays the shutdown of the server by more than 25 seconds', async () => {
    await using scene = await openScene({ serve: () => new Promise<GameAnswer>(() => undefined) });
    void scene.game.run(
      `local Rankd = require(game:GetService("ServerScriptService").Rankd)
      return Rankd.new({ url = "https://rankd.example.com" }):promote({ rankee = 1 })`,
    );
    await scene.clock.advance(1000);
    await scene.clock.passUntil(scene.game.close());
    expect(scene.game.now).toBeLessThan(26.5);
  });
});

describe('the key', () => {
  test('never appears in output, warnings, errors or results', async () => {
    await using scene = await openScene({
      serve: inTurn(
        { raise: `HttpError: bad header Bearer ${secret}` },
        refused(403, 'rank_not_allowed', { message: 'no' }),
        { status: 200, body: '' },
      ),
    });
    const seen = await scene.run<unknown>(
      `
      local typed = Rankd.new({ url = "https://rankd.example.com", key = given })
      local results = {}
      for _, client in { rankd, typed } do
        for _ = 1, 3 do
          local result = client:promote({ rankee = Players.Ann })
          table.insert(results, result)
          print(result.message, client, client.changed)
        end
      end
      return { results, Players.Ann:GetAttribute("RankdRank") }`,
      secret,
    );
    expect(scene.headers('authorization')).toContain(`Bearer ${secret}`);
    expect(JSON.stringify([seen, scene.game.output])).not.toContain(secret);
    expect(scene.game.output.filter((line) => line.includes('store it in a secret'))).toHaveLength(1);
  });

  test('is removed from errors that Roblox raises about a request', async () => {
    await using scene = await openScene({ serve: () => ({ raise: `HttpError: Unknown Bearer ${secret}` }) });
    const typed = 'return Rankd.new({ url = "https://rankd.example.com", key = given }):promote({ rankee = 1001 })';
    const { code, message } = await scene.run(typed, secret);
    expect([code, message]).toEqual(['no_answer', expect.stringContaining('Bearer (the key)')]);
  });

  test('causes a warning if the module is where players can read it', async () => {
    await using scene = await openScene({
      serve: (request) => applied(request),
      scripts: [{ ...rankdModule, path: ['ReplicatedStorage', 'Shared', 'Rankd'] }],
    });
    await scene.game.run('require(game:GetService("ReplicatedStorage").Shared.Rankd) return true');
    expect(scene.game.output).toEqual([expect.stringMatching(/^warn rankd: players can read .*ServerScriptService/)]);
    expect(source('Rankd/init.luau')).not.toMatch(/rk_(live|test)_\w/);
  });
});

describe('the options of a request', () => {
  test('a change with `once` has the same key and body on every server, whoever is playing there', async () => {
    const bodies = new Set<string>();
    for (const players of [[{ id: 1001, name: 'Ann' }], []]) {
      await using scene = await openScene({ serve: (request) => applied(request), players });
      await scene.run(`
        for _ = 1, 2 do
          rankd:setRank({ rankee = 1001, ranker = 1002, rank = 20, atLeast = true, once = "purchase-77" })
        end
        return true`);
      expect(scene.headers('idempotency-key')).toEqual(Array(2).fill('setRank:purchase-77'));
      for (const { body } of scene.game.requests) bodies.add(body);
    }
    expect([...bodies].map((body) => JSON.parse(body) as unknown)).toEqual([
      { robloxUserId: 1001, rankerId: 1002, rank: 20, atLeast: true },
    ]);
  });

  test('with atLeast, a member who already has the rank is reported as unchanged', async () => {
    await using scene = await openScene({ serve: (request) => applied(request, { oldRank: 50, newRank: 50 }) });
    const codes = await scene.run<string[]>(`
      return {
        rankd:setRank({ rankee = 1001, rank = 20, atLeast = true }).code,
        rankd:setRank({ rankee = 1001, rank = 50 }).code,
      }`);
    expect(codes).toEqual(['unchanged', 'ok']);
  });

  test.each([
    ['setRank({ rankee = 1001, rank = 20, ifRank = 10 })', 10],
    ['promote({ rankee = 1001, ifRank = " 10 " })', 10],
    ['demote({ rankee = 1001, ifRank = "Trainee" })', 'Trainee'],
  ])('%s sends the required current rank', async (call, ifRank) => {
    await using scene = await openScene({ serve: () => refused(409, 'rank_differs') });
    expect(await scene.run(`return rankd:${call}`)).toMatchObject({ code: 'rank_differs', isKnown: true, attempts: 1 });
    expect(JSON.parse(scene.game.requests[0]?.body ?? '')).toMatchObject({ ifRank });
  });

  test('getMember and getRoles return a member and the group’s roles', async () => {
    const roles = [
      { id: 71, name: 'Member', rank: 1 },
      { id: 72, name: 'Officer', rank: 20 },
    ];
    const answers: Record<string, object> = {
      '/v2/member': {
        ...{ message: 'User 1001 is Officer (rank 20).', robloxUserId: 1001, inGroup: true, rank: 20, roleId: 72 },
        ...{ userName: 'Ann', roleName: 'Officer', roles, suspended: true, suspendedUntil: 1_796_148_000 },
      },
      '/v2/roles': {
        message: 'The group has 2 roles.',
        roles: roles.map((role) => ({ ...role, canGive: role.id > 71 })),
      },
    };
    await using scene = await openScene({
      serve: ({ url }) => ({ status: 200, body: JSON.stringify({ success: true, ...answers[new URL(url).pathname] }) }),
    });
    expect(await scene.run('return rankd:getMember(Players.Ann)')).toMatchObject({
      ...{ ok: true, isKnown: true, userId: 1001, name: 'Ann', rank: 20, role: 'Officer', roles },
      suspendedUntil: 1_796_148_000,
    });
    expect(await scene.run('return rankd:getRoles()')).toMatchObject({
      ok: true,
      roles: [
        { name: 'Member', canGive: false },
        { name: 'Officer', canGive: true },
      ],
    });
    expect(scene.game.requests.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['GET', 'https://rankd.example.com/v2/member?placeid=1&robloxUserId=1001', ''],
      ['GET', 'https://rankd.example.com/v2/roles?placeid=1', ''],
    ]);
    expect(scene.headers('x-rankd-client')).toEqual(Array(2).fill(await scene.run('return Rankd.version')));
  });

  test('responses of a different shape give no member and no roles, and nothing raises', async () => {
    for (const body of [
      '{"success":true}',
      '{"success":true,"roles":5,"rank":"x"}',
      '{"success":true,"roles":[5,{}]}',
    ]) {
      await using scene = await openScene({ serve: () => ({ status: 200, body }) });
      const message = expect.not.stringContaining('changed');
      expect(await scene.run('return rankd:getMember(1001)')).toMatchObject({ ok: true, rank: 0, message });
      expect(await scene.run<object>('return rankd:getRoles()')).toMatchObject({ ok: true, message });
    }
  });
});

describe('clients with the same address and key', () => {
  test('act as one: one order per member, one budget, and the options of the first', async () => {
    let overlaps = 0;
    let running = 0;
    await using scene = await openScene({
      serve: async (request) => {
        overlaps += running;
        running += 1;
        await scene.clock.sleep(500);
        running -= 1;
        return applied(request);
      },
    });
    await scene.run(`
      local left = 6
      for index = 1, 6 do
        task.spawn(function()
          local client = Rankd.new({ url = "rankd.example.com/", requestsPerMinute = if index == 6 then 7 else nil })
          client:setRank({ rankee = 1001, rank = index })
          left -= 1
        end)
      end
      repeat task.wait(0.1) until left == 0
      return true`);
    expect(overlaps).toBe(0);
    expect(scene.game.requests.map(({ body }) => JSON.parse(body).rank)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(scene.game.output).toEqual([expect.stringMatching(/a different requestsPerMinute; it remains 120/)]);
  });

  test('also act as one if the key is in a script and they name different secrets', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const isOne = await scene.run<boolean>(
      `local url = "https://rankd.example.com"
      return Rankd.new({ url = url, key = given }) == Rankd.new({ url = url, key = given, secret = "other" })`,
      secret,
    );
    expect(isOne).toBe(true);
  });

  test('report an unknown option', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    await scene.run('return Rankd.new({ uri = "https://rankd.example.com" }) ~= nil');
    expect(scene.game.output).toEqual([expect.stringContaining('no option uri')]);
  });

  test('share one signal, which fires for every success after the attribute is set and before the caller resumes', async () => {
    await using scene = await openScene({ serve: (request) => applied(request) });
    const seen = await scene.run<unknown>(`
      local seen = {}
      local function note(name)
        return function(id)
          table.insert(seen, \`{name} {id} {Players.Ann:GetAttribute("RankdRank")}\`)
        end
      end
      local connection = rankd.changed:Connect(note("connect"))
      rankd.changed:Once(note("once"))
      task.spawn(function()
        local id, rank, result = rankd.changed:Wait()
        table.insert(seen, \`wait {id} {rank} {result.code}\`)
      end)
      Rankd.new({ url = "https://other.example.com" }):promote({ rankee = 1001 })
      table.insert(seen, "resumed")
      table.insert(seen, tostring(connection.Connected))
      connection:Disconnect()
      table.insert(seen, tostring(connection.Connected))
      rankd:promote({ rankee = 1001 })
      table.sort(seen)
      return seen`);
    expect(seen).toEqual(['connect 1001 20', 'false', 'once 1001 20', 'resumed', 'true', 'wait 1001 20 ok']);
  });
});

describe('the other servers of the game', () => {
  const announcing: GameWorld & { scripts: GameScript[] } = {
    scripts: [
      rankdModule,
      {
        class: 'ModuleScript',
        path: [...rankdModule.path, 'Config'],
        source: 'return { url = "https://rankd.example.com", announce = true }',
      },
    ],
  };
  const listen = `
    local heard = {}
    rankd.changed:Connect(function(id, rank, result)
      table.insert(heard, { id, rank, result.code, result.message })
    end)
    task.wait(5)
    return { heard, Players.Ann:GetAttribute("RankdRank") or "none" }`;

  test('are notified of each change in one message, and set the attribute there', async () => {
    await using here = await openScene({ serve: (request) => applied(request), ...announcing });
    await here.run(`${promoteAnn}`);
    await here.run('task.wait(1) return true');
    expect(here.game.published).toHaveLength(1);
    await using there = await openScene({ serve: (request) => applied(request), ...announcing });
    const received = there.run<unknown>(listen);
    for (const message of here.game.published) await there.game.receive(message);
    expect(await received).toEqual([[[1001, 20, 'ok', '1001 is Officer.']], 20]);
    expect(there.game.published).toEqual([]);
  });

  test('ignore their own messages, and messages of a different shape', async () => {
    await using scene = await openScene({ serve: (request) => applied(request), ...announcing });
    await scene.run(promoteAnn);
    await scene.run('task.wait(1) return true');
    const received = scene.run<unknown>(listen);
    for (const message of [
      ...scene.game.published,
      ...[5, {}, { userId: -1 }, { userId: 'x', rank: {} }].map((data) => ({ topic: 'rankd', data })),
    ])
      await scene.game.receive(message);
    expect(await received).toEqual([[], 20]);
    expect(scene.game.output).toEqual([]);
  });

  test('get a message only with `announce` in Config, and a failed message has no other effect', async () => {
    await using silent = await openScene({ serve: (request) => applied(request) });
    await silent.run(promoteAnn);
    await silent.run('task.wait(1) return true');
    expect(silent.game.published).toEqual([]);
    await using broken = await openScene({
      serve: (request) => applied(request),
      ...announcing,
      isMessagingDown: true,
    });
    expect(await broken.run(promoteAnn)).toMatchObject({ ok: true });
    await broken.run('task.wait(1) return true');
    expect(broken.game.output).toEqual([]);
  });
});

test('the Code type lists the codes of rankd and of the module, and the module has the package’s version', () => {
  const text = source('Rankd/init.luau');
  const [, union = ''] = /^export type Code =([\s\S]*?)\n\n/m.exec(text) ?? [];
  const codes = new Set([...union.matchAll(/"(\w+)"/g)].map(([, code]) => code));
  for (const code of publicCodes) expect(codes).toContain(code);
  for (const [, code] of text.matchAll(/resultOf\(\s*"(\w+)"/g)) expect(codes).toContain(code);
  expect(text).toContain(`local version = "${manifest.version}"`);
});
