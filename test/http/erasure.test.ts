import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { Secret } from '../../src/config/secret.ts';
import { openTestApp, type TestApp, type TestAppOptions, testConfig } from '../support/open-test-app.ts';

const secret = 'the secret on the Creator Dashboard';
const path = '/roblox/webhook';

async function open(config: TestAppOptions['config'] = {}): Promise<TestApp> {
  const app = await openTestApp({ config: { erasure: { secret: new Secret(secret) }, ...config } });
  onTestFinished(() => app.close());
  return app;
}

/** Returns a notification in the format of Roblox's documentation, with whitespace that re-serializing would lose. */
function notification(id: string, userId: unknown, EventType = 'RightToErasureRequest'): string {
  const content = {
    NotificationId: id,
    EventType,
    EventTime: '2023-12-30T16:24:24.2118874Z',
    EventPayload: { UserId: userId, GameIds: [1234, 2345] },
  };
  return JSON.stringify(content, null, 1);
}

function signatureOf(body: string, { at = Date.now(), key = secret } = {}): string {
  const time = Math.floor(at / 1_000);
  return `t=${time},v1=${createHmac('sha256', key).update(`${time}.${body}`).digest('base64')}`;
}

async function post(
  app: TestApp,
  body: string,
  signature = signatureOf(body),
): Promise<{ status: number; json: unknown }> {
  const response = await fetch(app.url + path, { method: 'POST', body, headers: { 'roblox-signature': signature } });
  return { status: response.status, json: await response.json() };
}

const accepted = (message: RegExp) => ({
  status: 200,
  json: { success: true, message: expect.stringMatching(message) },
});

test('an erasure request for a known user is recorded once, even if Roblox repeats it, and no log or response names the user', async () => {
  const app = await open();
  await app.rank(await app.createKey(), { rankeeId: 1001, newRankId: 20 });
  const body = notification('a-1', 1001);
  const lines = app.logLines.length;
  for (let tries = 0; tries < 2; tries += 1)
    expect(await post(app, body)).toMatchObject(accepted(/recorded.*--requested/));
  expect(await post(app, notification('a-2', '1001'))).toMatchObject({ status: 200 });
  const requestedAt = Date.parse('2023-12-30T16:24:24.211Z');
  expect(await app.store.waitingErasures()).toMatchObject([
    { id: 'a-1', userId: 1001, requestedAt },
    { id: 'a-2', userId: 1001, requestedAt },
  ]);
  const events = await app.store.listAudit({ limit: 9 });
  expect(events.filter(({ action }) => action === 'person.request')).toMatchObject([
    { subject: 'a-2', by: 'roblox', detail: { rankeeId: 1001 } },
    { subject: 'a-1' },
  ]);
  expect(app.logLines.slice(lines).join('')).not.toContain('1001');
});

test('an erasure request for a user without records is completed at once; other notifications change nothing', async () => {
  const app = await open();
  expect(await post(app, notification('b-1', 8_589_935_601))).toMatchObject(accepted(/no record/));
  expect(await post(app, notification('b-2', 1, 'SampleNotification'))).toMatchObject(accepted(/test/));
  expect(await post(app, notification('b-3', 1, 'SubscriptionPurchased'))).toMatchObject({ status: 200 });
  expect(await app.store.waitingErasures()).toEqual([]);
  const [event, ...others] = (await app.store.listAudit({ limit: 9 })).filter(({ by }) => by === 'roblox');
  expect({ event, others }).toMatchObject({ event: { subject: 'b-1', detail: { isKnown: false } }, others: [] });
  expect(JSON.stringify(event)).not.toContain('8589935601');
});

test('a notification with a missing, wrong or old signature is refused in one sentence', async () => {
  const app = await open();
  const body = notification('c-1', 1001);
  const good = signatureOf(body);
  const refused: Array<[signature: string, sentence: RegExp, sentBody?: string]> = [
    ['', /contains no signature/],
    [good.replace(/,v1=.*/, ''), /contains no signature/],
    [good.replace(/t=\d+/, 't=now'), /contains no signature/],
    [signatureOf(body, { key: 'another secret' }), /does not match/],
    [good, /does not match/, body.replace('1001', '1002')],
    [good.replace(/t=\d/, 't=9'), /does not match/],
    [good.replace(/v1=.*/, 'v1=AAAA'), /does not match/],
    [signatureOf(body, { at: Date.now() - 610_000 }), /last 10 minutes/],
    [signatureOf(body, { at: Date.now() + 610_000 }), /last 10 minutes/],
  ];
  for (const [signature, sentence, sent = body] of refused) {
    expect(await post(app, sent, signature), signature).toMatchObject({
      ...{ status: 401, json: { success: false, code: 'invalid_key', message: expect.stringMatching(sentence) } },
    });
  }
  expect(await app.store.waitingErasures()).toEqual([]);
  expect(await post(app, body, signatureOf(body, { at: Date.now() - 590_000 }))).toMatchObject({ status: 200 });
});

test('wrong signatures count against the limit for wrong keys, but never block a valid signature', async () => {
  const app = await open({ limits: { failedAuthPerMinute: 2 } });
  const statuses = [];
  for (let tries = 0; tries < 4; tries += 1) statuses.push((await post(app, '{}', '')).status);
  expect(statuses).toEqual([401, 401, 429, 429]);
  expect(await post(app, notification('d-1', 1001))).toMatchObject({ status: 200 });
});

test('a signed body with missing or invalid fields is a bad request, and the error names them', async () => {
  const app = await open();
  for (const [body, named] of [
    ['[]', 'JSON object'],
    ['{', 'not JSON'],
    ['{"EventType":"RightToErasureRequest"}', 'NotificationId'],
    [notification('e-1', undefined), 'EventPayload UserId'],
    [notification('e-2', -5), 'EventPayload UserId'],
    [notification('e\u0000', 5), 'NotificationId'],
  ] as const)
    expect(await post(app, body)).toMatchObject({ status: 400, json: { message: expect.stringContaining(named) } });
  expect(await post(app, '{"NotificationId":"e-3","EventType":"RightToErasureRequest"}')).toMatchObject({
    json: { message: 'EventPayload is missing.' },
  });
});

test('without a secret, the route does not exist', async () => {
  const app = await open({ erasure: { secret: undefined } });
  expect(await post(app, notification('f-1', 1001))).toMatchObject({ status: 404 });
});

test('once a reload removes the secret, a signature with an empty secret is refused, even for a request in flight', async () => {
  const app = await open();
  const body = notification('g-1', 1001);
  const headers = { 'roblox-signature': signatureOf(body, { key: '' }), 'content-length': body.length };
  const begun = request(app.url + path, { method: 'POST', headers });
  begun.write(body.slice(0, 1));
  await expect.poll(() => app.app.requests.count).toBe(1);
  await app.live.applyConfig(testConfig(app.dataDir), async () => undefined);
  begun.end(body.slice(1));
  const [response] = (await once(begun, 'response')) as [IncomingMessage];
  expect(response.resume().statusCode).toBe(404);
  expect(await app.store.listAudit({ limit: 9 })).not.toContainEqual(expect.objectContaining({ by: 'roblox' }));
});
