import { describe, expect, test, vi } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import { mintKey } from '../../src/core/api-key.ts';
import type { AuditEvent } from '../../src/core/model.ts';
import type { Platform } from '../../src/ports/index.ts';
import { operate } from '../contracts/store/samples.ts';
import { rankBody } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, place, type Sent, send, type TestApp } from '../support/open-test-app.ts';
import { platformWith } from '../support/platform-with.ts';

const from = '127.0.0.1';

/** Returns the audit events for refused callers, once the daemon has written them. */
async function refused(app: TestApp, clock: ManualClock): Promise<Array<[string, AuditEvent['detail']]>> {
  await clock.advance(60_000);
  const auditEvents = async () =>
    (await app.store.listAudit({ limit: 100 })).filter(({ action }) => action === 'caller.refused');
  await expect.poll(auditEvents).not.toEqual([]); // the daemon writes all events together
  return (await auditEvents())
    .map(({ subject, detail }) => [subject, detail] as [string, AuditEvent['detail']])
    .sort(([a], [b]) => a.localeCompare(b));
}

test('the audit counts refused callers by the real reason', async () => {
  const clock = new ManualClock();
  await using app = await openTestApp({ clock });
  const key = await app.createKey();
  const keyId = (await app.store.findKey('main'))?.id;
  for (let count = 0; count < 3; count += 1) await app.verify(key, 43);
  await app.verify(undefined);
  await app.verify('rk_live_nonsense');
  await app.rank(await app.createKey({ name: 'verify', scopes: ['verify'] }));
  const verifyOnly = (await app.store.findKey('verify'))?.id;
  expect(await refused(app, clock)).toEqual([
    ['invalid_key', { count: 1, reason: 'malformed', from }],
    ['key_not_allowed', { count: 1, reason: 'missing_scope', keyId: verifyOnly, from }],
    ['missing_authorization', { count: 1, reason: 'no_key', from }],
    ['place_not_whitelisted', { count: 3, reason: 'not_listed', keyId, placeId: 43, from }],
  ]);
});

test('the log and the audit record the use of a revoked key as such, with the id of the key', async () => {
  const clock = new ManualClock();
  await using app = await openTestApp({ clock });
  const key = await app.createKey();
  const { id: keyId } = (await app.store.findKey('main')) ?? expect.fail('there is no key');
  await operate(app.app).revokeKey(keyId, 'cli:ann@host');
  await app.verify(key);
  expect(await refused(app, clock)).toEqual([['invalid_key', { count: 1, reason: 'revoked', keyId, from }]]);
  expect(app.logLines.join('')).toContain(`the key is revoked (${keyId})`);
  expect(await app.store.listAudit({ keyId, action: 'caller.refused', limit: 9 })).toHaveLength(1);
});

test('counted refusals are saved when the daemon stops', async () => {
  const first = await openTestApp();
  await first.verify(undefined);
  await first.stop();
  await using second = await openTestApp({ dataDir: first.dataDir });
  const events = await second.store.listAudit({ limit: 10 });
  expect(events.map(({ action }) => action)).toContain('caller.refused');
});

test('a refused change is audited once, as a change; an invalid request is not audited', async () => {
  const clock = new ManualClock();
  await using app = await openTestApp({ clock, config: { policy: { protectedMembers: [1001] } } });
  await app.rank(await app.createKey());
  await app.rank(await app.createKey({ name: 'other' }), { rankeeId: 9000 });
  await app.rank(await app.createKey({ name: 'third' }), { rankeeId: 'nobody' });
  await app.verify(undefined);
  expect(await refused(app, clock)).toEqual([['missing_authorization', { count: 1, reason: 'no_key', from }]]);
  const events = await app.store.listAudit({ limit: 100 });
  expect(events.filter(({ action }) => action === 'rank.refused')).toHaveLength(2);
});

test('made-up places cannot fill the disk: beyond 200, one audit event counts the rest', async () => {
  const clock = new ManualClock();
  await using app = await openTestApp({ clock });
  const key = await app.createKey();
  const places = Array.from({ length: 300 }, (_, index) => 1_000 + index);
  for (const placeId of places) await app.verify(key, placeId);
  await clock.advance(60_000);
  const events = await app.store.listAudit({ limit: 1_000 });
  const sums = events.filter(({ action }) => action === 'caller.refused').map(({ detail }) => Number(detail['count']));
  expect(sums.length).toBeLessThanOrEqual(201);
  expect(sums.reduce((total, count) => total + count, 0)).toBe(300);
});

test('no secret reaches the log, the audit or the history, wherever a caller puts it', async () => {
  const clock = new ManualClock();
  await using app = await openTestApp({ clock });
  const key = await app.createKey();
  const tail = key.slice(12);
  await app.verify(key);
  await app.verify(key, 43);
  await app.rank(key, { webhookUrl: `https://x.example/${key}` });
  await app.rank(key, { rankeeId: key });
  await app.post('/v1/apikey', { headers: { authorization: `Basic ${key}` }, body: { placeid: place } });
  await app.post('/v1/apikey', { headers: { authorization: `Bearer ${key} ${key}` }, body: { placeid: place } });
  await app.post(`/v1/apikey/${key}?key=${key}`, { key, body: key });
  await app.post(`/v1/ranker?placeid=${key}`, { key, body: rankBody() });
  await send(`${app.url}/%zz${key}`, {});
  await app.verify(key.slice(0, -1));
  await clock.advance(60_000);
  const remembered = JSON.stringify([
    await app.store.listAudit({ limit: 100 }),
    await app.store.listChanges({ limit: 9 }),
  ]);
  expect(app.logLines.length).toBeGreaterThan(8);
  expect(app.logLines.join('')).not.toContain(tail.slice(0, 20));
  expect(remembered).not.toContain(tail.slice(0, 20));
});

test('successful verifications and health checks are logged only at level debug', async () => {
  await using app = await openTestApp({ logLevel: 'info' });
  const key = await app.createKey();
  await app.verify(key);
  await send(`${app.url}/healthz`, {});
  await send(`${app.url}/readyz`, {});
  await app.rank(key);
  await app.verify(key, 43);
  const logged = () => app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  await expect.poll(() => logged().length).toBe(2);
  expect(logged()).toMatchObject([{ path: '/v1/ranker' }, { path: '/v1/apikey', code: 'place_not_whitelisted' }]);
});

function linesOf(app: TestApp, code: string): Array<Record<string, unknown>> {
  return app.logLines.map((line) => JSON.parse(line)).filter((line) => line.msg === 'request' && line.code === code);
}

test('callers that guess keys cannot fill the disk: after 20 log lines, one a minute reports how many were omitted', async () => {
  const clock = new ManualClock();
  await using app = await openTestApp({ clock, logLevel: 'info', config: { limits: { failedAuthPerMinute: 0 } } });
  const logged = () => linesOf(app, 'invalid_key');
  for (let index = 0; index < 30; index += 1) await app.verify(mintKey('live').secret);
  await expect.poll(() => logged().length).toBe(20);
  await clock.advance(60_000);
  for (let index = 0; index < 3; index += 1) await app.verify(mintKey('live').secret);
  await expect.poll(() => logged().length).toBe(21);
  expect(logged().map(({ leftOut }) => leftOut)).toEqual([...Array(20).fill(undefined), 10]);
  const [sum] = (await app.store.listAudit({ limit: 100 })).filter(({ action }) => action === 'caller.refused');
  expect(sum?.detail).toEqual({ reason: 'unknown', from, count: 30 });
});

describe('callers without a key cannot fill the disk with log lines', () => {
  const unavailable = () => Promise.reject(new RankdError('platform_unavailable', 'The platform does not answer.'));
  const post: Sent = { method: 'POST' };
  const long = `/${'\u0080'.repeat(15)}`.repeat(13);
  const kinds: Array<[what: string, path: string, sent: Sent]> = [
    ['the documents', '/openapi.json', {}],
    ['the page', '/docs', {}],
    ['HEAD of it', '/docs', { method: 'HEAD' }],
    ['readiness, while rankd is not ready', '/readyz', {}],
    ['HEAD of that', '/readyz', { method: 'HEAD' }],
    ['a long address that does not exist', encodeURI(long), {}],
    ['the wrong method', '/v1/ranker', {}],
    ['no place', '/v1/apikey', { ...post, body: {} }],
    ['no key', '/v1/apikey', { ...post, body: { placeid: place } }],
    ['a wrong key', '/v1/apikey', { ...post, body: { placeid: place }, key: 'rk_live_nonsense' }],
    ['a wrong key for a change', `/v1/ranker?placeid=${place}`, { ...post, key: 'rk_live_nonsense' }],
    ['no JSON', '/v1/apikey', { ...post, body: 'no JSON' }],
    ['a body that is too large', '/v1/apikey', { ...post, body: 'x'.repeat(70_000) }],
    ['two hosts', '/healthz', { headers: { host: 'x, y' } }],
  ];

  test('within an hour, with any kind of request', async () => {
    const clock = new ManualClock();
    const platform = (group: Platform) => platformWith(group, { group: unavailable, roles: unavailable });
    await using app = await openTestApp({ clock, logLevel: 'info', platform });
    const sendAll = () => Promise.all(kinds.map(([, path, sent]) => send(app.url + path, sent)));
    for (let count = 0; count < 25; count += 1) await sendAll();
    for (let minute = 0; minute < 30; minute += 1) {
      await clock.advance(120_000);
      for (let count = 0; count < 3; count += 1) await sendAll();
    }
    const requests = app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    const byCode = Object.entries(Object.groupBy(requests, ({ code }) => String(code)));
    expect(byCode.length).toBeGreaterThan(7);
    for (const [code, lines = []] of byCode) expect([code, lines.length <= 80]).toEqual([code, true]);
    expect(app.logLines.join('').length).toBeLessThan(1_000_000);
  });

  test('while the store fails, or because of a bug in rankd', async () => {
    await using app = await openTestApp({ logLevel: 'info' });
    const failing = [new RankdError('store_unavailable', 'The disk is full.'), new Error('a fault')];
    for (const error of failing) {
      const freshen = vi.spyOn(app.store, 'freshen').mockRejectedValue(error);
      for (let count = 0; count < 30; count += 1)
        expect((await app.verify('rk_live_nonsense')).status).toBeGreaterThan(499);
      freshen.mockRestore();
    }
    expect(linesOf(app, 'store_unavailable')).toHaveLength(20);
    expect(app.logLines.filter((line) => line.includes('request failed'))).toHaveLength(20);
  });
});

test('log lines of callers without a key never crowd out those of callers with a key', async () => {
  await using app = await openTestApp({ logLevel: 'info' });
  const key = await app.createKey();
  for (let count = 0; count < 30; count += 1) await send(`${app.url}/v1/apikey`, { method: 'POST', body: 'no JSON' });
  await app.rank(key, { rankeeId: 'nobody' });
  const keyId = (await app.store.findKey('main'))?.id;
  expect(linesOf(app, 'invalid_request').filter((line) => line['keyId'] === keyId)).toHaveLength(1);
});

test('the log line of a change has its request id, key, place, member and change id', async () => {
  await using app = await openTestApp();
  const answer = await app.rank(await app.createKey());
  const line = app.logLines.find((text) => text.includes(String(answer.headers['x-request-id'])));
  expect(JSON.parse(line ?? '{}')).toMatchObject({
    level: 'info',
    method: 'POST',
    path: '/v1/ranker',
    status: 200,
    keyId: expect.stringMatching(/^key_/),
    placeId: place,
    rankeeId: 1001,
    changeId: answer.headers['x-rank-change'],
  });
});
