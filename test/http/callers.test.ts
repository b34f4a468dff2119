import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { membershipOf, senderOf } from '../../src/base/net.ts';
import { openTestApp, send } from '../support/open-test-app.ts';
import { connectTo, rawAnswers } from '../support/raw-answers.ts';
import { sampleOf, scrape } from '../support/scrape.ts';

describe('the sender of a request through a proxy', () => {
  const isTrusted = membershipOf(['127.0.0.0/8', '10.0.0.0/8']);
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:5001', '203.0.113.7'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['198.51.100.1, 203.0.113.7:5001', '203.0.113.7'],
    ['203.0.113.7:5001, 10.0.0.2:443', '203.0.113.7'],
    ['203.0.113.7, unknown', '127.0.0.1'],
    ['203.0.113.7, unknown, 10.0.0.2', '10.0.0.2'],
    ['_hidden', '127.0.0.1'],
    ['203.0.113.7:port', '127.0.0.1'],
    ['', '127.0.0.1'],
    [undefined, '127.0.0.1'],
  ])('with X-Forwarded-For: %s from a trusted proxy, is %s', (forwardedFor, sender) => {
    expect(senderOf('127.0.0.1', forwardedFor, isTrusted)).toBe(sender);
  });

  test('is the peer itself if the peer is not a trusted proxy', () => {
    expect(senderOf('203.0.113.9', '203.0.113.7', isTrusted)).toBe('203.0.113.9');
  });
});

test('the log, the audit and the limit identify a refused caller by its address, whatever the port', async () => {
  await using app = await openTestApp({ config: { limits: { failedAuthPerMinute: 5 } } });
  const key = await app.createKey();
  const from = (n: number) => ({ 'x-forwarded-for': `203.0.113.77:${5_000 + n}` });
  const statuses: number[] = [];
  for (let n = 0; n < 8; n += 1) {
    const answer = await app.post('/v1/apikey', { key: 'rk_live_nonsense', body: { placeid: 42 }, headers: from(n) });
    statuses.push(answer.status);
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429]);
  await app.post('/v1/apikey', { key, body: { placeid: 43 }, headers: from(9) });
  const lines = app.logLines
    .map((line) => JSON.parse(line))
    .filter(({ msg, status }) => msg === 'request' && status > 400);
  expect(lines.map(({ status }) => status)).toEqual([...statuses, 403]);
  expect(new Set(lines.map((line) => line.from))).toEqual(new Set(['203.0.113.77']));
  await app.app.refused.flush(app.app);
  const events = await app.store.listAudit({ action: 'caller.refused', limit: 10 });
  expect(events.map(({ subject, detail }) => [subject, detail['from'], detail['count']]).sort()).toEqual([
    ['invalid_key', '203.0.113.77', 5],
    ['place_not_whitelisted', '203.0.113.77', 1],
    ['too_many_requests', '203.0.113.77', 3],
  ]);
});

test('one noisy refused caller does not crowd others out of the log, and together they cannot fill it', async () => {
  await using app = await openTestApp({ logLevel: 'info', config: { limits: { failedAuthPerMinute: 0 } } });
  const refused = (ip: string) =>
    app.post('/v1/apikey', { key: 'rk_live_nonsense', body: { placeid: 42 }, headers: { 'x-forwarded-for': ip } });
  const lines = () => app.logLines.map((line) => JSON.parse(line)).filter(({ code }) => code === 'invalid_key');
  for (let n = 0; n < 30; n += 1) await refused('203.0.113.1');
  await refused('203.0.113.2');
  await expect.poll(() => lines().length).toBe(21);
  expect(lines().filter(({ from }) => from === '203.0.113.1')).toHaveLength(20);
  expect(lines().filter(({ from }) => from === '203.0.113.2')).toMatchObject([{ leftOut: 10 }]);
  for (let n = 0; n < 300; n += 1) await refused(`198.51.100.${n % 250}`);
  expect(lines().length).toBeGreaterThanOrEqual(200);
  expect(lines().length).toBeLessThan(240); // the first 200, and then 20 a minute for as long as this test runs
});

const v2 = Buffer.from([
  ...Buffer.from('\r\n\r\n\0\r\nQUIT\n'),
  0x21,
  0x11,
  0,
  12,
  1,
  2,
  3,
  4,
  5,
  6,
  7,
  8,
  0,
  80,
  1,
  187,
]);

test.each([
  ['TLS', 'TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
  ['HTTP/2', 'HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
  [
    'version 1 of the PROXY protocol',
    'the PROXY protocol',
    Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.1 5001 80\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n'),
  ],
  [
    'version 2 of the PROXY protocol',
    'the PROXY protocol',
    Buffer.concat([v2, Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')]),
  ],
])(
  '%s on a port for plain HTTP/1.1 is refused by name, counted, and logged once with the peer',
  async (_what, protocol, bytes) => {
    await using app = await openTestApp({ config: { metrics: { enabled: true, host: '127.0.0.1', port: 0 } } });
    for (let n = 0; n < 3; n += 1) {
      const [answer] = await rawAnswers(app.url, bytes);
      expect(answer).toMatchObject({ status: 400, json: { message: expect.stringContaining(protocol) } });
    }
    const lines = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
    const msg = expect.stringContaining(`a caller used ${protocol} on a port for plain HTTP/1.1: `);
    expect(lines).toMatchObject([{ from: '127.0.0.1', msg }]);
    const count = sampleOf(await scrape(app.metricsUrl), 'rankd_foreign_connections_total', { protocol });
    expect(count).toBe(3);
    expect((await send(`${app.url}/healthz`, {})).status).toBe(200);
  },
);

test.each([1, 3, 14, 16, 20])(
  'the HTTP/2 preface is recognized even if its first packet has only %d bytes',
  async (size) => {
    await using app = await openTestApp();
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
    const socket = connectTo(app.url).setNoDelay();
    socket.write(preface.slice(0, size));
    await delay(50); // otherwise, the kernel could merge the two writes
    socket.write(preface.slice(size));
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 .*This port accepts only plain HTTP\/1\.1, not HTTP\/2\./s);
  },
);
