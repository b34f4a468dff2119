import http from 'node:http';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTestApp, send, type TestApp } from '../support/open-test-app.ts';
import { connectTo } from '../support/raw-answers.ts';
import { anyBody, anyEdits, anyHeaders, anyMethod, anyTarget } from './hostile.ts';

/** The number of requests in each of the two tests; `npm run fuzz -- --runs 100000` raises it. */
const runs = Number(process.env['FUZZ_RUNS'] ?? 2_000);
const atOnce = 20;
const timeout = 20_000 + runs * 40;

let app: TestApp;
let key: string;
const connections = new http.Agent({ keepAlive: true, maxSockets: atOnce });

beforeAll(async () => {
  // Turns off the limits and the breaker, so that every request gets as far as possible.
  const limits = { rankPerMinute: 0, verifyPerMinute: 0, failedAuthPerMinute: 0 };
  app = await openTestApp({
    config: {
      limits,
      group: { ladder: [10, 20] },
      compat: ['rankgun', 'noblox-server'],
      policy: { breaker: { enabled: false, demotions: 1, highRank: undefined, highChanges: 1, windowMs: 1 } },
    },
  });
  key = await app.createKey({ scopes: ['verify', 'rank', 'suspend', 'roles'] });
});

afterAll(async () => {
  connections.destroy();
  await app.close();
});

interface Received {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

function check({ status, headers, body }: Received): void {
  expect(status, body).toBeLessThan(500);
  expect(headers['x-request-id']).toMatch(/^req_\w{12}$/);
  if (status === 200 && body.includes('<h1>rankd is running</h1>')) return; // GET /
  expect(headers['content-type'], body).toBe('application/json; charset=utf-8');
  const json: unknown = JSON.parse(body);
  if (status === 200) return;
  expect(json).toMatchObject({
    success: false,
    error: expect.any(String),
    code: expect.stringMatching(/^[a-z_]+$/),
    message: expect.any(String),
    requestId: headers['x-request-id'],
  });
  expect(Buffer.byteLength(body)).toBeLessThan(2_048);
}

/**
 * Checks that the daemon is ready, has no request in flight and logged no error, and that `Object.prototype` has no new
 * properties.
 */
async function expectUnharmed(): Promise<void> {
  expect((await send(`${app.url}/readyz`, {})).status).toBe(200);
  await expect.poll(() => app.app.requests.count).toBe(0);
  expect(app.logLines.filter((line) => ['error', 'fatal'].includes(JSON.parse(line).level))).toEqual([]);
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect((await app.verify(key)).status).toBe(200);
}

describe('every response is JSON with a request id, and never a 5xx,', () => {
  test('to well-formed HTTP with hostile methods, addresses, headers and bodies', { timeout }, async () => {
    const request = fc.record({
      method: anyMethod,
      target: anyTarget,
      headers: anyHeaders(key),
      body: fc.option(anyBody, { nil: undefined, freq: 10 }),
    });
    const requests = fc.array(request, { minLength: atOnce, maxLength: atOnce });
    const property = fc.asyncProperty(requests, async (batch) => {
      for (const received of await Promise.all(batch.map(exchange))) check(received);
    });
    await fc.assert(property, { numRuns: Math.ceil(runs / atOnce), endOnFailure: true });
    await expectUnharmed();
  });

  test('to bytes that are almost HTTP', { timeout }, async () => {
    const bytes = fc
      .tuple(anyTarget, anyHeaders(key), anyBody, anyEdits())
      .map(([target, headers, body, edit]) => edit(requestBytes(target, headers, body)));
    const property = fc.asyncProperty(fc.array(bytes, { minLength: atOnce, maxLength: atOnce }), async (batch) => {
      for (const answers of await Promise.all(batch.map(rawExchange))) answers.forEach(check);
    });
    await fc.assert(property, { numRuns: Math.ceil(runs / atOnce), endOnFailure: true });
    await expectUnharmed();
  });
});

async function exchange({
  method,
  target,
  headers,
  body,
}: {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
}): Promise<Received> {
  const { hostname, port } = new URL(app.url);
  const { host = 'rankd.example', ...others } = headers;
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path: target, headers: { host, ...others }, agent: connections };
    const request = http.request(options, (response) => {
      const { statusCode: status = 0, headers } = response;
      buffer(response).then((bytes) => resolve({ status, headers, body: bytes.toString() }), reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

function requestBytes(target: string, headers: Record<string, string>, body: Buffer): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`POST ${target} HTTP/1.1`, 'host: x', ...lines, `content-length: ${body.length}`, 'connection: close'];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

async function rawExchange(bytes: Buffer): Promise<Received[]> {
  const socket = connectTo(app.url);
  const received: Buffer[] = [];
  await new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
    socket.on('data', (chunk) => received.push(chunk));
    socket.end(bytes);
  });
  return answersIn(Buffer.concat(received).toString('latin1'));
}

function answersIn(text: string): Received[] {
  if (text === '') return [];
  const end = text.indexOf('\r\n\r\n');
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
  expect(status, text).toBeGreaterThan(99);
  if (status === 100) return answersIn(text.slice(end + 4));
  const headers = Object.fromEntries(
    lines.map((line) => line.split(': ', 2)).map(([name = '', value]) => [name, value]),
  );
  const bodyEnd = end + 4 + Number(headers['content-length']);
  expect(bodyEnd, text).toBeLessThanOrEqual(text.length);
  const body = Buffer.from(text.slice(end + 4, bodyEnd), 'latin1').toString();
  return [{ status, headers, body }, ...answersIn(text.slice(bodyEnd))];
}
