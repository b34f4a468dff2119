import { once } from 'node:events';
import type http from 'node:http';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectError, rankBody } from '../support/answers.ts';
import { type Answer, openTestApp, place, type Sent, send, type TestApp } from '../support/open-test-app.ts';
import { startPost } from '../support/send.ts';

let app: TestApp;
let key: string;

beforeAll(async () => {
  app = await openTestApp();
  key = await app.createKey();
});

afterAll(() => app.close());

const verify = (body: Sent['body'], headers: Sent['headers'] = {}): Promise<Answer> =>
  app.post('/v1/apikey', { key, body, headers });

const rank = (body: Sent['body'], headers: Sent['headers'] = {}): Promise<Answer> =>
  app.post(`/v1/ranker?placeid=${place}`, { key, body, headers });

const invalid = { status: 400, code: 'invalid_request', error: 'Invalid request' };

const json = JSON.stringify({ placeid: place });

test.each([
  undefined,
  '',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'no type;;=',
  'a/b, c/d',
])('a body is parsed as JSON, even with the content type %j', async (type) =>
  expect((await verify(json, { 'content-type': type })).status).toBe(200),
);

test.each(['gzip', 'x-gzip', 'GZIP'])('a body may be compressed with %s', async (encoding) => {
  expect((await verify(gzipSync(json), { 'content-encoding': encoding })).status).toBe(200);
  expect((await rank(gzipSync(JSON.stringify(rankBody())), { 'content-encoding': encoding })).status).toBe(200);
});

test('a body may be chunked and start with a byte order mark', async () => {
  expect((await verify(`\uFEFF${json}`, { 'transfer-encoding': 'chunked' })).status).toBe(200);
});

test('a body may arrive byte by byte', async () => {
  const request = startPost(`${app.url}/v1/apikey`, key, { 'content-length': json.length });
  for (const character of json) {
    request.write(character);
    await new Promise(setImmediate);
  }
  request.end();
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  expect([response.statusCode, await text(response)]).toEqual([200, expect.stringContaining('ws_')]);
});

test('an empty body marked as gzip is treated as empty, not as damaged', async () => {
  const missing = { status: 400, code: 'missing_placeid', error: 'Missing placeid' };
  expectError(await verify(Buffer.alloc(0), { 'content-encoding': 'gzip' }), missing);
});

const packed = gzipSync(json);
const broken: Array<[string, Buffer, string | undefined]> = [
  ['truncated gzip', packed.subarray(0, -9), 'gzip'],
  ['gzip with trailing data', Buffer.concat([packed, Buffer.from('junk')]), 'gzip'],
  ['plain text marked as gzip', Buffer.from(json), 'gzip'],
  ['gzip without Content-Encoding', packed, undefined],
  ['in an unknown encoding', packed, 'br'],
  ['invalid UTF-8', Buffer.from(json.replace('placeid', 'placeid\xff'), 'latin1'), undefined],
  ['UTF-16', Buffer.from(json, 'utf16le'), undefined],
  ['form fields instead of JSON', Buffer.from('placeid=42'), undefined],
  ['truncated JSON', Buffer.from('{"placeid":'), undefined],
  ['JSON with endless nesting', Buffer.from('['.repeat(60_000)), undefined],
];
test.each(broken)('a body is refused if it is %s', async (_name, body, encoding) => {
  expectError(await verify(body, { 'content-encoding': encoding }), invalid);
});

test('a body may be at most 64 KiB, both compressed and decompressed', async () => {
  const tooLarge = { status: 413, code: 'body_too_large', error: 'Body too large' };
  const padded = (size: number) => json.padEnd(size);
  expect((await verify(padded(65_536))).status).toBe(200);
  expect((await verify(gzipSync(padded(65_536)), { 'content-encoding': 'gzip' })).status).toBe(200);
  expectError(await verify(padded(65_537)), tooLarge);
  expectError(await verify(padded(65_537), { 'transfer-encoding': 'chunked' }), tooLarge);
  expectError(await verify(gzipSync(padded(65_537)), { 'content-encoding': 'gzip' }), tooLarge);
  const announced = { 'content-length': '65537' };
  expectError(await send(`${app.url}/healthz`, { method: 'GET', body: padded(65_537), headers: announced }), tooLarge);
  expectError(await rank(gzipSync(Buffer.alloc(50_000_000)), { 'content-encoding': 'gzip' }), tooLarge);
});
