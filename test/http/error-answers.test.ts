import { describe, expect, test } from 'vitest';
import { RankdError, reasons } from '../../src/base/errors.ts';
import { statuses } from '../../src/http/errors.ts';
import { expectError, messageOf } from '../support/answers.ts';
import { openTestApp } from '../support/open-test-app.ts';
import { afterSql, again, cases, drop, failing, rank, rejectAll } from './error-cases.ts';

test.each(Object.entries(cases))('%s', async (code, { options, provoke = rank(), ...expected }) => {
  await using app = await openTestApp(options);
  expectError(await provoke(app), { code, ...expected });
});

test('the cases above provoke every code that a game can get, except the timeout of a slow request', () => {
  const operatorErrors = Object.entries(statuses).filter(([code, status]) => status === 500 && code !== 'internal');
  const notHere = new Set([...operatorErrors.map(([code]) => code), 'request_timeout']);
  expect(Object.keys(cases).sort()).toEqual(
    Object.keys(reasons)
      .filter((code) => !notHere.has(code))
      .sort(),
  );
});

describe('the error response', () => {
  test('lists the existing ranks if the rank is unknown', async () => {
    await using app = await openTestApp();
    expect(messageOf(await rank({ newRankId: 21 })(app))).toContain('10 (Trainee), 20 (Officer), 50 (Captain)');
  });

  test.each([drop('rank_changes'), rejectAll])(
    'hides an internal failure, which is logged under the same request id: $sqlite',
    async (sql) => {
      await using app = await openTestApp();
      const answer = await afterSql(sql)(app);
      expect(answer.text).not.toMatch(/rank_changes|inside of rankd|\.ts/);
      const { requestId } = answer.json as { requestId: string };
      const lines = app.logLines.filter((line) => line.includes(requestId)).join('');
      expect(lines).toMatch(
        /no such table: (?:main\.)?rank_changes|relation .{1,9}rank_changes.{1,3} does not exist|inside of rankd/,
      );
    },
  );

  test('hides a bug in rankd, which is logged with its stack under the same request id', async () => {
    await using app = await openTestApp();
    const key = await app.createKey();
    app.app.store.lookUpKey = () => {
      throw new TypeError('a mistake inside of rankd');
    };
    const answer = await app.verify(key);
    expectError(answer, { status: 500, code: 'internal', error: 'Internal Server Error' });
    expect(answer.text).not.toContain('inside of rankd');
    const { requestId } = answer.json as { requestId: string };
    const lines = app.logLines.map((line) => JSON.parse(line)).filter((line) => line.requestId === requestId);
    const err = { type: 'TypeError', stack: expect.stringMatching(/inside of rankd.*error-answers\.test\.ts/s) };
    expect(lines).toMatchObject([
      { level: 'error', msg: 'request failed', err },
      { level: 'warn', msg: 'request', status: 500 },
    ]);
  });

  test('has the rate limit headers if an inbound limit applies, which counts per key', async () => {
    await using app = await openTestApp({ config: { limits: { rankPerMinute: 1, rankBurst: 1 } } });
    const refused = await again({})(app);
    expect(refused.headers).toMatchObject({ 'ratelimit-policy': '"rank";q=1;w=60', ratelimit: '"rank";r=0;t=60' });
    expect((await app.rank(await app.createKey({ name: 'other' }))).status).toBe(200);
  });

  test.each(['He said "no".', 'Two\nlines.', 'A \\ and a \u0001.', 'Größe 🙂 \u2028.'])(
    'delivers any message intact: %j',
    async (message) => {
      await using app = await openTestApp(failing(new RankdError('platform_rejected', message)));
      const answer = await rank()(app);
      expectError(answer, { status: 502, code: 'platform_rejected', error: 'Rejected by Roblox' });
      expect(messageOf(answer)).toBe(`${message} (simulated group)`);
    },
  );

  test('truncates a long platform message to stay below 2 KB', async () => {
    const long = new RankdError('platform_rejected', '\u0001'.repeat(5_000));
    await using app = await openTestApp(failing(long));
    expect(Buffer.byteLength((await rank()(app)).text)).toBeLessThan(2048);
  });
});
