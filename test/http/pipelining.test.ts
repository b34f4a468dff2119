import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { connectionOf } from '../../src/http/connections.ts';
import { createServer } from '../../src/http/server.ts';
import { rankBody } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, send, type TestApp } from '../support/open-test-app.ts';
import { holdWrites } from '../support/platform-with.ts';

/** Receives requests that are sent before the previous ones are answered. */
let app: TestApp;
beforeAll(async () => {
  app = await openTestApp();
});
afterAll(() => app.close());

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** Starts a separate server whose connections the test can inspect. */
async function serve({ live } = app) {
  const server = createServer(live, { trustedProxies: ['127.0.0.1'], maxConnections: 1_000 });
  onTestFinished(() => server.close());
  const sockets: net.Socket[] = [];
  server.server.on('connection', (socket: net.Socket) => {
    sockets.push(socket);
    socket.once('close', () => sockets.splice(sockets.indexOf(socket), 1));
  });
  let taken = 0;
  server.server.on('request', () => {
    taken += 1;
  });
  const { port } = new URL(await server.listen({ host: '127.0.0.1', port: 0 }));
  const connect = async () => {
    const socket = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined); // the server is expected to close connections
    await once(socket, 'connect');
    return socket;
  };
  return { connect, sockets, taken: () => taken };
}

test('sixteen pipelined requests are answered in order, then the connection ends', async () => {
  const { connect } = await serve();
  const socket = await connect();
  socket.write(Array.from({ length: 20 }, (_, index) => get(index === 15 ? '/docs/last' : '/healthz')).join(''));
  const answers = (await text(socket)).split(/(?=HTTP\/1\.1 )/);
  expect(answers.map((answer) => answer.slice(9, 12))).toEqual([...Array(15).fill('200'), '404']);
  expect(answers.map((answer) => /connection: close/i.test(answer))).toEqual([...Array(15).fill(false), true]);
});

test('a change among the first sixteen pipelined requests is answered, although too many others follow it', async () => {
  const { platform, begun, release } = holdWrites();
  await using held = await openTestApp({ platform });
  const body = JSON.stringify(rankBody());
  const head = ['POST /v1/ranker?placeid=42 HTTP/1.1', 'Host: x', `Authorization: Bearer ${await held.createKey()}`];
  const socket = net.connect(Number(new URL(held.url).port), '127.0.0.1');
  socket.write(
    `${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}${get('/healthz').repeat(30)}`,
  );
  await begun;
  release();
  const answered = await text(socket);
  expect(answered.match(/HTTP\/1\.1 \d+/g)).toEqual(Array(16).fill('HTTP/1.1 200'));
  expect(answered).toContain('"success":true');
});

test('any number of requests is answered on one connection if each is sent after the previous response', async () => {
  const { connect } = await serve();
  const socket = await connect();
  for (let count = 0; count < 50; count += 1) {
    socket.write(get('/healthz'));
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
  }
});

test.each(['/openapi.json', '/docs', '/%zz'])(
  'if callers that never read send %s hundreds of times at once, only the first few requests are processed',
  async (path) => {
    const { connect, sockets, taken } = await serve();
    for (let count = 0; count < 50; count += 1) (await connect()).pause().write(get(path).repeat(400));
    await expect.poll(() => sockets).toEqual([]);
    expect(taken()).toBeLessThanOrEqual(50 * 18); // a few more than 16: rankd answers /%zz before it reads further
  },
);

test('callers that never read cost at most sixteen responses each', async () => {
  const { connect, sockets } = await serve();
  const caller = (await connect()).pause();
  const waiting = () => sockets.map((socket) => connectionOf(socket).unanswered.length);
  for (let packet = 0; packet < 400 && sockets.length > 0; packet += 1) {
    caller.write(get('/docs').repeat(8));
    await new Promise((resolve) => setImmediate(resolve));
    expect(Math.max(0, ...waiting())).toBeLessThanOrEqual(16);
  }
});

test('callers that do not read a response for half a minute are cut off, and others are not', async () => {
  const clock = new ManualClock();
  await using timed = await openTestApp({ clock });
  const { connect, sockets } = await serve(timed);
  const nonReading = (await connect()).pause();
  await expect.poll(() => sockets).toHaveLength(1);
  const served = sockets[0] ?? expect.fail();
  while (served.writableLength === 0) {
    const { bytesRead } = served;
    nonReading.write(get('/docs').repeat(8));
    while (
      served.bytesRead === bytesRead ||
      (connectionOf(served).unanswered.length > 0 && served.writableLength === 0)
    )
      await new Promise((resolve) => setImmediate(resolve));
  }
  const other = await connect();
  other.write(get('/healthz'));
  await once(other, 'data');
  await clock.advance(15_000);
  expect(sockets).toHaveLength(2);
  await clock.advance(15_000);
  await expect.poll(() => sockets).toHaveLength(1);
  other.write(get('/healthz'));
  expect(String(await once(other, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
});

test.each(['/openapi.json', '/docs'])('all responses to %s share one buffer', async (path) => {
  const end = vi.spyOn(ServerResponse.prototype, 'end');
  onTestFinished(() => end.mockRestore());
  await send(app.url + path, {});
  await send(app.url + path, {});
  const [[first] = [], [second] = []] = end.mock.calls;
  expect(first).toBeInstanceOf(Buffer);
  expect(second).toBe(first);
});

test('a refused connection is closed, even if the caller never closes its side', async () => {
  const { connect, sockets } = await serve();
  const socket = await connect();
  socket.write('garbage\r\n\r\n');
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
  await expect.poll(() => sockets).toEqual([]);
});
