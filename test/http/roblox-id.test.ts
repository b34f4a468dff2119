import { expect, test } from 'vitest';
import { codeOf, expectError, messageOf } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, place, roles, type TestApp } from '../support/open-test-app.ts';

type Check = 'off' | 'warn' | 'enforce';

const ask = {
  '/v1/apikey': (app: TestApp, key: string, headers: Record<string, string>) =>
    app.post('/v1/apikey', { key, headers, body: { placeid: place } }),
  '/v1/ranker': (app: TestApp, key: string, headers: Record<string, string>) => app.rank(key, {}, { headers }),
};

const openWith = (robloxId: Check) => openTestApp({ config: { security: { robloxId } } });

const other: Array<[string, Record<string, string>, RegExp]> = [
  ['of another place', { 'roblox-id': '43' }, /header names place 43/],
  ['that is not an id', { 'roblox-id': '42, 43' }, /is not a place id/],
  ['that is empty', { 'roblox-id': '' }, /no Roblox-Id header/],
  ['that is missing', {}, /no Roblox-Id header/],
];

test.each(other)(
  'with security.roblox_id: enforce, a Roblox-Id %s is refused on both operations',
  async (_what, headers, why) => {
    await using app = await openWith('enforce');
    const key = await app.createKey();
    for (const send of Object.values(ask)) {
      const answer = await send(app, key, headers);
      expectError(answer, { status: 403, code: 'place_not_whitelisted', error: 'Place not whitelisted' });
      expect(messageOf(answer)).toMatch(why);
      expect(messageOf(answer)).toContain('security.roblox_id is enforce');
    }
    expect((await app.heldBy(1001))?.includes(roles.officer)).toBe(false);
    await app.app.refused.flush(app.app);
    const [refused] = await app.store.listAudit({ action: 'caller.refused', limit: 1 });
    expect(refused?.detail).toEqual({ reason: 'roblox_id_mismatch', placeId: place, from: '127.0.0.1', count: 2 });
  },
);

test("with security.roblox_id: enforce, the place's own Roblox-Id passes, and a wrong key is reported first", async () => {
  await using app = await openWith('enforce');
  const key = await app.createKey();
  for (const send of Object.values(ask)) {
    expect((await send(app, key, { 'roblox-id': String(place) })).status).toBe(200);
    expect(codeOf(await send(app, 'rk_live_wrong', {}))).toBe('invalid_key');
  }
});

test.each(other)('with security.roblox_id: warn, a Roblox-Id %s passes and is logged', async (_what, headers) => {
  await using app = await openWith('warn');
  const key = await app.createKey();
  expect((await ask['/v1/ranker'](app, key, headers)).status).toBe(200);
  expect((await ask['/v1/apikey'](app, key, { 'roblox-id': String(place) })).status).toBe(200);
  await expect
    .poll(() => warningsOf(app))
    .toMatchObject([{ placeId: place, keyId: (await app.store.findKey('main'))?.id }]);
});

test('with security.roblox_id: warn, a wrong one is logged 20 times, then once a minute', async () => {
  const clock = new ManualClock();
  await using app = await openTestApp({ clock, config: { security: { robloxId: 'warn' } } });
  const key = await app.createKey();
  for (let index = 0; index < 30; index += 1) await ask['/v1/apikey'](app, key, { 'roblox-id': '43' });
  await expect.poll(() => warningsOf(app)).toHaveLength(20);
  await clock.advance(60_000);
  await ask['/v1/apikey'](app, key, { 'roblox-id': '43' });
  await expect.poll(() => warningsOf(app)).toHaveLength(21);
});

test('with security.roblox_id: warn, a wrong one is not logged for requests over a limit', async () => {
  await using app = await openTestApp({ config: { security: { robloxId: 'warn' }, limits: { verifyPerMinute: 2 } } });
  const key = await app.createKey();
  const answers = [];
  for (let index = 0; index < 4; index += 1) answers.push(await ask['/v1/apikey'](app, key, { 'roblox-id': '43' }));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
  expect(warningsOf(app)).toHaveLength(2);
});

test('by default, Roblox-Id is ignored', async () => {
  await using app = await openTestApp();
  const key = await app.createKey();
  expect((await ask['/v1/ranker'](app, key, { 'roblox-id': '43' })).status).toBe(200);
  expect(app.logLines.join('')).not.toContain('"level":"warn"');
});

function warningsOf(app: TestApp): unknown[] {
  return app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
}
