import { once } from 'node:events';
import type net from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { connectionOf } from '../../src/http/connections.ts';
import { createServer } from '../../src/http/server.ts';
import { SqliteDatabase } from '../../src/stores/sqlite/engine/database.ts';
import { codeOf, expectError, rankBody } from '../support/answers.ts';
import { type Answer, openTestApp, place, send, type TestApp } from '../support/open-test-app.ts';
import { holdWrites } from '../support/platform-with.ts';
import { connectTo, rawAnswers } from '../support/raw-answers.ts';
import { isOnPostgres } from '../support/store-of-app.ts';

let app: TestApp;
let key: string;

beforeAll(async () => {
  app = await openTestApp();
  key = await app.createKey();
});

afterEach(async () => expect(await settled()).toBe(0));

afterAll(() => app.close());

/** Waits at most 100 turns for requests in flight to end. Returns the number of requests still in flight. */
async function settled(): Promise<number> {
  for (let turn = 0; turn < 100 && app.app.requests.count > 0; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
  return app.app.requests.count;
}

/** Sends bytes and returns the responses. In a string, replaces each `KEY` with a valid key first. */
function answersTo(bytes: string | Buffer, options: { thenEnds?: boolean } = {}): Promise<Answer[]> {
  return rawAnswers(app.url, typeof bytes === 'string' ? bytes.replaceAll('KEY', key) : bytes, options);
}

async function answerTo(bytes: string | Buffer, options: { thenEnds?: boolean } = {}): Promise<Answer> {
  const [answer, ...more] = await answersTo(bytes, options);
  if (answer === undefined || more.length > 0) throw new Error(`${more.length + 1} answers`);
  return answer;
}

/** Returns a request that closes the connection. `extra` has more header lines, such as Host, which it lacks. */
function post(extra: string, { target = '/v1/apikey', version = '1.1', body = `{"placeid":${place}}` } = {}): string {
  const head = [`POST ${target} HTTP/${version}`, 'Authorization: Bearer KEY', `Content-Length: ${body.length}`];
  return `${[...head, 'Connection: close', extra].filter((line) => line !== '').join('\r\n')}\r\n\r\n${body}`;
}

function changeBy(secret: string): string {
  const body = JSON.stringify(rankBody());
  const head = [`POST /v1/ranker?placeid=${place} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${secret}`];
  return `${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`;
}

const wrongMethod = { status: 405, code: 'method_not_allowed', error: 'Method not allowed' };
const invalid = { status: 400, code: 'invalid_request', error: 'Invalid request' };

test('CONNECT is refused with a list of allowed methods', async () => {
  const answer = await answerTo('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
  expectError(answer, wrongMethod);
  expect(answer.headers['allow']).toBe('GET, HEAD, POST');
});

describe('unusual but valid HTTP is answered:', () => {
  test.each([
    ['a body announced with Expect: 100-continue', post('Expect: 100-continue'), [100, 200]],
    ['an unknown expectation', post('Expect: the-unexpected'), [200]],
    ['no Host', post(''), [200]],
    ['HTTP/1.0', post('', { version: '1.0' }), [200]],
    ['an Upgrade that is ignored', post('Upgrade: h2c').replace('close', 'close, Upgrade'), [200]],
    ['an address in absolute form', post('', { target: 'http://rank.example//v1/apikey/' }), [200]],
  ])('%s', async (_name, bytes, statuses) => {
    const answers = await answersTo(bytes);
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    expect(answers.at(-1)?.json).toMatch(/^ws_/);
  });

  test('a wrong method on an address in absolute form', async () => {
    const answer = await answerTo('GET http://rank.example/v1/ranker?x=1 HTTP/1.1\r\nConnection: close\r\n\r\n');
    expectError(answer, wrongMethod);
    expect(answer.headers['allow']).toBe('POST');
  });
});

test('a caller that half-closes after complete requests gets all responses before the connection ends', async () => {
  const answers = await answersTo(changeBy(key) + changeBy(key), { thenEnds: true });
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
});

test('the connection is closed after an ignored Upgrade, and the response announces it', async () => {
  const upgrade = post('Upgrade: websocket').replace('Connection: close', 'Connection: Upgrade');
  const answer = await answerTo(upgrade + post(''));
  expect([answer.status, answer.headers['connection']]).toEqual([200, 'close']);
});

describe('an invalid request gets one JSON response, and the connection is closed:', () => {
  const chunked = post('').replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked');
  test.each([
    ['garbage', 'what is this\r\n\r\n'],
    ['binary garbage', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a method that does not exist', 'RANK /v1/ranker HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an address without a leading slash', 'GET v1/apikey HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a negative length', post('').replace(/Content-Length: \d+/, 'Content-Length: -1')],
    ['two lengths', post('Content-Length: 5')],
    ['a length and chunks', post('Transfer-Encoding: chunked')],
    ['a chunk without a size', chunked],
    ['a header without a name', post(': value')],
    ['two different Host headers', post('Host: x\r\nHost: y')],
    ['the same Host header twice', post('Host: x\r\nHost: x')],
    ['a bad escape in the address', post('', { target: '/v1/%zz' })],
  ])('%s', async (_name, bytes) => {
    const answer = await answerTo(bytes);
    expectError(answer, invalid);
    expect(answer.headers['connection']).toBe('close');
  });

  test('a body that ends too early', async () => {
    expectError(await answerTo(post('').slice(0, -5), { thenEnds: true }), invalid);
  });

  test.each([
    ['one header that is too large', `X: ${'x'.repeat(20_000)}`],
    ['too many headers', Array.from({ length: 3_000 }, (_, index) => `X${index}: y`).join('\r\n')],
    ['an address that is too long', ''],
  ])('%s', async (_name, header) => {
    const target = header === '' ? `/v1/apikey?${'x'.repeat(20_000)}` : '/v1/apikey';
    const answer = await answerTo(post(header, { target }));
    expectError(answer, { status: 431, code: 'headers_too_large', error: 'Headers too large' });
  });

  test.each([
    ['announced', post('').replace(/Content-Length: \d+/, 'Content-Length: 70000')],
    ['in chunks', chunked.replace(/\{.*$/, `${(70_000).toString(16)}\r\n${' '.repeat(70_000)}`)],
  ])('a body that is too large, %s, is refused before all of it has arrived', async (_name, bytes) => {
    expectError(await answerTo(bytes), { status: 413, code: 'body_too_large', error: 'Body too large' });
  });
});

test('pipelined requests on one connection are answered in order', async () => {
  const keepAlive = post('').replace('Connection: close\r\n', '');
  const answers = await answersTo(keepAlive + keepAlive.replace('42', '43') + post('', { target: '/nowhere' }));
  expect(
    answers.map(({ status, json }) => [status, typeof json === 'string' ? 'ws' : codeOf({ json } as Answer)]),
  ).toEqual([
    [200, 'ws'],
    [403, 'place_not_whitelisted'],
    [404, 'not_found'],
  ]);
});

test('requests that arrive together are handled in order, with a single check for key changes', async () => {
  const asked = isOnPostgres
    ? vi.spyOn(app.store, 'freshen')
    : vi.spyOn(SqliteDatabase.prototype, 'changeToken', 'get');
  onTestFinished(() => asked.mockRestore());
  const keepAlive = post('').replace('Connection: close\r\n', '');
  const answers = await answersTo(keepAlive + keepAlive.replace('42', '43') + post(''));
  expect(answers.map(({ status }) => status)).toEqual([200, 403, 200]);
  expect(asked).toHaveBeenCalledTimes(1);
});

describe('invalid data after a change does not replace its response, and the connection is closed after that response:', () => {
  const chunkless = 'POST /v1/apikey HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\ngarbage\r\n';
  test.each([
    ['garbage after a queued request', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 'garbage\r\n\r\n', 2],
    ['a request whose body is garbage', '', chunkless, 1],
    ['CONNECT', '', 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 1],
    ['such a request after a queued one', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', chunkless, 2],
  ])('%s', async (_name, waiting, broken, answers) => {
    const { platform, begun, release } = holdWrites();
    await using held = await openTestApp({ platform });
    const socket = connectTo(held.url);
    socket.write(changeBy(await held.createKey()) + waiting);
    await begun;
    await expect.poll(() => held.logLines.filter((line) => line.includes('/healthz'))).toHaveLength(answers - 1);
    socket.write(broken);
    await send(`${held.url}/healthz`, {});
    release();
    const answered = await text(socket);
    expect(answered.match(/HTTP\/1\.1 \d+/g)).toEqual(Array(answers).fill('HTTP/1.1 200'));
    expect(answered).toContain('"success":true');
    await expect.poll(() => held.app.requests.count).toBe(0);
  });
});

describe('an answered request leaves no state, and a later error is reported:', () => {
  test.each([
    ['pipelined requests', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 200],
    ['bad addresses', 'GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ])('%s', async (_name, request, status) => {
    const server = createServer(app.live, { trustedProxies: [], maxConnections: 1 });
    onTestFinished(() => server.close());
    const accepted = once(server.server, 'connection') as Promise<[net.Socket]>;
    const url = await server.listen({ host: '127.0.0.1', port: 0 });
    const socket = connectTo(url);
    let answered = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      answered += chunk;
    });
    socket.write(request.repeat(3));
    const [connection] = await accepted;
    const statuses = () => [...answered.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, found]) => Number(found));
    await expect.poll(statuses).toEqual([status, status, status]);
    await expect.poll(() => connectionOf(connection).unanswered).toEqual([]);
    socket.write('garbage\r\n\r\n');
    await once(socket, 'close');
    expect(statuses()).toEqual([status, status, status, 400]);
  });
});

test('a caller that disconnects in the middle of its body leaves no state', async () => {
  const before = app.logLines.length;
  const socket = connectTo(app.url);
  socket.write(post('').slice(0, -5));
  while (app.app.requests.count === 0) await new Promise((resolve) => setImmediate(resolve));
  socket.destroy();
  await once(socket, 'close');
  expect(await settled()).toBe(0);
  const lines = app.logLines.slice(before).map((line) => JSON.parse(line));
  expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
});

test('a caller that disconnects before its request is handled leaves no state', async () => {
  const server = createServer(app.live, { trustedProxies: [], maxConnections: 1 });
  onTestFinished(() => server.close());
  server.server.on('request', (request) => request.destroy());
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const socket = connectTo(url);
  socket.write(post('').slice(0, -5));
  await once(socket, 'close');
  expect(await settled()).toBe(0);
});

test('no response follows one that closes the connection, whatever the caller sends next', async () => {
  const socket = connectTo(app.url);
  socket.write('HEAD /v1/apikey HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\nnot HTTP at all\r\n\r\n');
  expect((await text(socket)).match(/^HTTP\/1\.1 \d{3}/gm)).toEqual(['HTTP/1.1 400']);
});
