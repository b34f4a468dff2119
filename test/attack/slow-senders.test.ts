import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, openTestApp, place, type TestApp } from '../support/open-test-app.ts';
import { connectTo } from '../support/raw-answers.ts';

/** Few enough to be cheap for an attacker, but too many for a daemon that would wait for all of them. */
const slowCount = 200;
const timeout = 60_000;

let app: TestApp;
let key: string;

beforeAll(async () => {
  app = await openTestApp({ config: { limits: { verifyPerMinute: 0 } } });
  key = await app.createKey();
});

afterAll(() => app.close());

const body = JSON.stringify({ placeid: place });
const head = () => `POST /v1/apikey HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;

const verify = (): Promise<Answer> => app.post('/v1/apikey', { key, body });

describe.concurrent('slow senders get 408 within seconds, and delay no other caller:', () => {
  test('heads that trickle and never end', { timeout }, async () => {
    await expectTimeouts(() => trickle(head(), 'x: y\r\n'));
  });

  test('bodies that trickle and never end', { timeout }, async () => {
    await expectTimeouts(() => trickle(`${head()}Content-Length: 60000\r\n\r\n`, ' '));
  });

  test('chunked bodies that never end', { timeout }, async () => {
    await expectTimeouts(() => trickle(`${head()}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'));
  });

  test('half-open connections: a part of a head, then silence', { timeout }, async () => {
    await expectTimeouts(() => trickle(head(), ''));
  });
});

test('callers that never read their responses do not delay others', { timeout }, async () => {
  const request = `${head()}Content-Length: ${body.length}\r\n\r\n${body}`;
  const nonReading = Array.from({ length: 20 }, () => connectTo(app.url).pause());
  for (const socket of nonReading) socket.write(request.repeat(200));
  for (let count = 0; count < 20; count += 1) expect((await verify()).status).toBe(200);
  for (const socket of nonReading) socket.destroy();
  await expect.poll(() => app.app.requests.count, { timeout }).toBe(0);
});

/** Expects valid requests to succeed while the slow connections are open, and every slow one to end with a 408. */
async function expectTimeouts(open: () => Promise<string>): Promise<void> {
  const slow = Array.from({ length: slowCount }, open);
  for (let count = 0; count < 20; count += 1) expect((await verify()).status).toBe(200);
  for (const received of await Promise.all(slow))
    expect(received).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
}

/**
 * Sends the beginning, and then the piece every 500 ms. Resolves with the response once the server closes the
 * connection.
 */
function trickle(beginning: string, piece: string): Promise<string> {
  const socket = connectTo(app.url);
  socket.write(beginning);
  const dripping = setInterval(() => socket.writable && socket.write(piece), 500);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  return new Promise((resolve) => {
    socket.once('close', () => {
      clearInterval(dripping);
      resolve(received);
    });
  });
}
