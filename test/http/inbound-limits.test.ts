import { describe, expect, test } from 'vitest';
import { codeOf, expectError, messageOf, rankBody } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type ConfigOverrides, openTestApp, place, type Sent, type TestApp } from '../support/open-test-app.ts';
import { holdReads } from '../support/platform-with.ts';
import { rawAnswers } from '../support/raw-answers.ts';

/** Sends requests, and counts the responses that are neither 429 nor 401. */
const countAdmitted = async (count: number, ask: () => Promise<{ status: number }>) => {
  const answers = await Promise.all(Array.from({ length: count }, ask));
  return answers.filter(({ status }) => status !== 429 && status !== 401).length;
};

let user = 1_000_000;
/**
 * Returns a function that sends a rank request for a different user each time. The users are not members, so that no
 * request writes or waits in a queue.
 */
const rank =
  (app: TestApp, key: string, at = place) =>
  () => {
    user += 1;
    return app.post(`/v1/ranker?placeid=${at}`, { key, body: rankBody({ rankeeId: user }) });
  };

const verify =
  (app: TestApp, key: string | undefined, sent: Sent = {}) =>
  () =>
    app.post('/v1/apikey', { key, body: { placeid: place }, ...sent });

async function open(limits: ConfigOverrides['limits'] = {}, server: ConfigOverrides['server'] = {}) {
  const clock = new ManualClock();
  const app = await openTestApp({ clock, config: { limits, server } });
  return { app, clock, [Symbol.asyncDispose]: () => app.close() };
}

describe('rank requests of one key', () => {
  test('may be 300 at once and 600 a minute, enough for a command on a whole team', async () => {
    await using world = await open();
    const { app, clock } = world;
    const key = await app.createKey();
    expect(await countAdmitted(320, rank(app, key))).toBe(300);
    await clock.advance(10_000);
    expect(await countAdmitted(120, rank(app, key))).toBe(100);
    const refused = await rank(app, key)();
    expectError(refused, { status: 429, code: 'too_many_requests', error: 'Too many requests', waits: true });
    expect(refused.headers).toMatchObject({
      'ratelimit-policy': '"rank";q=300;w=30',
      ratelimit: '"rank";r=0;t=30',
      'retry-after': '1',
    });
  });

  test('are limited by the rate of the key, if it has one, instead of the general rate', async () => {
    await using world = await open({ rankPerMinute: 10, rankBurst: 5 });
    const { app } = world;
    const slow = await app.createKey({ name: 'slow', rules: { ratePerMinute: 2 } });
    const fast = await app.createKey({ name: 'fast', rules: { ratePerMinute: 600 } });
    expect(await countAdmitted(6, rank(app, slow))).toBe(2);
    expect(messageOf(await rank(app, slow)())).toContain('limited to 2 a minute');
    expect((await rank(app, fast)()).headers['ratelimit-policy']).toBe('"rank";q=5;w=1');
    expect(await countAdmitted(6, rank(app, await app.createKey()))).toBe(5);
  });

  test('are limited per place if such a limit is set, and each place has a separate one', async () => {
    await using world = await open({ placePerMinute: 3 });
    const { app } = world;
    const key = await app.createKey({ places: [place, 43] });
    expect(await countAdmitted(5, rank(app, key))).toBe(3);
    const refused = await rank(app, key)();
    expect([codeOf(refused), refused.headers['ratelimit-policy']]).toEqual(['too_many_requests', '"place";q=3;w=60']);
    const elsewhere = await rank(app, key, 43)();
    expect(elsewhere.headers['ratelimit-policy']).toBe('"place";q=3;w=60, "rank";q=300;w=30');
    expect(elsewhere.headers['ratelimit']).toMatch(/^"place";r=2;t=\d+, "rank";r=296;t=\d+$/);
  });

  test('may be at most 10 at once for one member, which does not affect other keys', async () => {
    const { platform, release } = holdReads();
    await using app = await openTestApp({ platform });
    const [flooding, calm] = [await app.createKey({ name: 'flooding' }), await app.createKey({ name: 'calm' })];
    const ask = (key: string) => app.rank(key);
    const waiting = Array.from({ length: 10 }, () => ask(flooding));
    await expect.poll(() => app.app.requests.count).toBe(10);
    const refused = await ask(flooding);
    expectError(refused, { status: 429, code: 'too_many_requests', error: 'Too many requests', waits: true });
    expect(messageOf(refused)).toContain('10 changes to member 1001');
    waiting.push(ask(calm));
    release();
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200);
    expect((await ask(flooding)).status).toBe(200);
  });

  test('are unlimited if the limit is 0', async () => {
    await using world = await open({ rankPerMinute: 0 });
    expect(await countAdmitted(400, rank(world.app, await world.app.createKey()))).toBe(400);
  });
});

describe('requests without a valid key', () => {
  const wrong = 'rk_live_nonsense';

  test('are limited per address, and all of them count in the audit', async () => {
    await using world = await open({ failedAuthPerMinute: 3 });
    const { app, clock } = world;
    const codes = [];
    for (const key of [wrong, undefined, wrong, wrong, undefined]) codes.push(codeOf(await verify(app, key)()));
    expect(codes).toEqual([
      ...['invalid_key', 'missing_authorization', 'invalid_key'],
      ...['too_many_requests', 'too_many_requests'],
    ]);
    const refused = await rank(app, wrong)();
    expectError(refused, { status: 429, code: 'too_many_requests', error: 'Too many requests', waits: true });
    await clock.advance(20_000);
    expect(codeOf(await verify(app, wrong)())).toBe('invalid_key');
    await app.app.refused.flush(app.app);
    const sums = (await app.store.listAudit({ limit: 20 })).filter(({ action }) => action === 'caller.refused');
    expect(sums.reduce((sum, { detail }) => sum + Number(detail['count']), 0)).toBe(7);
  });

  test('never block a valid key from the same address', async () => {
    await using world = await open({ failedAuthPerMinute: 1 });
    const { app } = world;
    const key = await app.createKey();
    expect(await countAdmitted(50, verify(app, wrong))).toBe(0);
    expect(codeOf(await verify(app, wrong)())).toBe('too_many_requests');
    expect(await countAdmitted(50, verify(app, key))).toBe(50);
    expect(await countAdmitted(50, rank(app, key))).toBe(50);
  });

  test('are counted by the address that a trusted proxy reports, or its network for IPv6', async () => {
    await using world = await open({ failedAuthPerMinute: 1 });
    const from = async (address: string) =>
      codeOf(await verify(world.app, wrong, { headers: { 'x-forwarded-for': address } })());
    expect(await from('203.0.113.7')).toBe('invalid_key');
    expect(await from('203.0.113.7')).toBe('too_many_requests');
    expect(await from('203.0.113.8')).toBe('invalid_key');
    expect(await from('2001:db8:1:2::3')).toBe('invalid_key');
    expect(await from('2001:db8:1:2:ffff::')).toBe('too_many_requests');
    expect(await from('2001:db8:1:3::3')).toBe('invalid_key');
    expect(await from('198.51.100.1, 203.0.113.7')).toBe('too_many_requests');
  });

  test("are counted by the reported address even on one connection with the proxy's own requests", async () => {
    await using world = await open({ failedAuthPerMinute: 1 });
    const request = (...headers: string[]) =>
      [
        'POST /v1/apikey HTTP/1.1',
        `Authorization: Bearer ${wrong}`,
        ...headers,
        'Content-Length: 14',
        '',
        '{"placeid":42}',
      ].join('\r\n');
    const own = request();
    const answers = await rawAnswers(
      world.app.url,
      own +
        request('X-Forwarded-For: 203.0.113.7') +
        request('X-Forwarded-For: 203.0.113.8') +
        own +
        request('Connection: close'),
    );
    const accepted = Array.from({ length: 3 }, () => 'invalid_key');
    expect(answers.map(codeOf)).toEqual([...accepted, 'too_many_requests', 'too_many_requests']);
  });

  test('are not counted by the address that an untrusted proxy reports', async () => {
    await using world = await open({ failedAuthPerMinute: 1 }, { trustedProxies: [] });
    const from = async (address: string) =>
      codeOf(await verify(world.app, wrong, { headers: { 'x-forwarded-for': address } })());
    expect([await from('203.0.113.7'), await from('203.0.113.8')]).toEqual(['invalid_key', 'too_many_requests']);
  });
});

describe('requests with one key for places that are not on its whitelist', () => {
  test('are limited, and all of them count in the audit', async () => {
    await using world = await open({ failedAuthPerMinute: 3 });
    const { app, clock } = world;
    const key = await app.createKey();
    const codes = [];
    for (const elsewhere of [1, 2, 3, 4]) codes.push(codeOf(await app.verify(key, elsewhere)));
    expect(codes).toEqual([...Array(3).fill('place_not_whitelisted'), 'too_many_requests']);
    const refused = await rank(app, key, 5)();
    expectError(refused, { status: 429, code: 'too_many_requests', error: 'Too many requests', waits: true });
    await clock.advance(20_000);
    expect(codeOf(await app.verify(key, 6))).toBe('place_not_whitelisted');
    await app.app.refused.flush(app.app);
    const sums = (await app.store.listAudit({ limit: 20 })).filter(({ action }) => action === 'caller.refused');
    expect(sums.every(({ detail }) => detail['reason'] === 'not_listed')).toBe(true);
    expect(sums.reduce((sum, { detail }) => sum + Number(detail['count']), 0)).toBe(6);
  });

  test('never delay a whitelisted place or another key', async () => {
    await using world = await open({ failedAuthPerMinute: 1 });
    const { app } = world;
    const [key, other] = [await app.createKey(), await app.createKey({ name: 'other' })];
    for (let elsewhere = 1; elsewhere <= 10; elsewhere += 1) await app.verify(key, elsewhere);
    expect(codeOf(await app.verify(key, 11))).toBe('too_many_requests');
    expect(await countAdmitted(50, verify(app, key))).toBe(50);
    expect(await countAdmitted(50, rank(app, key))).toBe(50);
    expect(codeOf(await app.verify(other, 11))).toBe('place_not_whitelisted');
  });

  test('are limited to 60 a minute by default', async () => {
    await using world = await open();
    const { app } = world;
    const key = await app.createKey();
    const answers = await Promise.all(Array.from({ length: 70 }, (_, index) => app.verify(key, 1_000 + index)));
    expect(answers.filter((answer) => codeOf(answer) === 'place_not_whitelisted')).toHaveLength(60);
  });
});
