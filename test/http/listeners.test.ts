import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connectionOf } from '../../src/http/connections.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type ConfigOverrides, openTestApp } from '../support/open-test-app.ts';
import { openTestPage } from '../support/open-test-page.ts';
import { tempDir } from '../support/temp-dir.ts';

/** One of rankd's listeners. The table in SECURITY.md names the tests in this file. */
interface Listener {
  name: string;
  /** The maximum number of connections. */
  most: number;
  /** A path with a large response. */
  path: string;
  open(options: { clock?: ManualClock; config?: ConfigOverrides }): Promise<{ url: string; logLines: string[] }>;
}

const listeners: Listener[] = [
  {
    name: 'API',
    most: 40,
    path: '/openapi.json',
    async open({ config = {}, ...options }) {
      const server = { maxConnections: 40, ...config.server };
      const app = await openTestApp({ ...options, config: { ...config, server } });
      onTestFinished(() => app.close());
      return app;
    },
  },
  {
    name: 'page',
    most: 100,
    path: '/large-AB12.js',
    async open(options) {
      const pageFolder = join(tempDir(), 'dashboard');
      mkdirSync(pageFolder);
      writeFileSync(join(pageFolder, 'large-AB12.js'), 'x'.repeat(200_000));
      const page = await openTestPage({ ...options, pageFolder });
      onTestFinished(() => page[Symbol.asyncDispose]());
      return { url: (await page.dashboard.open()).url, logLines: page.app.logLines };
    },
  },
  {
    name: 'metrics',
    most: 20,
    path: '/metrics',
    async open({ config, ...options }) {
      const metrics = { enabled: true, host: '127.0.0.1', port: 0 };
      const app = await openTestApp({ ...options, config: { ...config, metrics } });
      onTestFinished(() => app.close());
      return { url: app.metricsUrl ?? '', logLines: app.logLines };
    },
  },
];

/** Connects and sends the text. Ignores errors, because the server closes connections. */
async function caller(url: string, sends = ''): Promise<net.Socket> {
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  if (sends !== '') socket.write(sends);
  return socket;
}

describe.each(listeners)('$name', ({ most, path, open }) => {
  const get = (url: string, address = path) => `GET ${address} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`;
  const slow = (url: string) => `${get(url).trimEnd()}\r\nContent-Length: 9000\r\n\r\n `;

  test('at the limit, the slowest connections are closed for a new one', async () => {
    const { url, logLines } = await open({});
    for (let count = 0; count < most; count += 1) await caller(url, slow(url).replace('GET', 'POST'));
    for (let count = 0; count < 10; count += 1) {
      const other = await caller(url, get(url));
      expect(String((await once(other, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
      await caller(url, slow(url).replace('GET', 'POST'));
    }
    expect(logLines.join('\n')).toContain('closed a connection, because the listener was at or near');
  });

  test('one network has at most a quarter of the connections', async () => {
    const { url } = await open({ config: { server: { trustedProxies: [] } } });
    const sockets: net.Socket[] = [];
    for (let count = 0; count < most / 4 + 5; count += 1) sockets.push((await caller(url)).resume());
    await expect.poll(() => sockets.filter((socket) => socket.readableEnded || socket.destroyed).length).toBe(5);
  });

  test('sixteen pipelined requests are answered, then the connection ends', async () => {
    const { url } = await open({});
    const socket = await caller(url, get(url).repeat(400));
    expect((await text(socket)).match(/HTTP\/1\.1 \d+/g)).toEqual(Array(16).fill('HTTP/1.1 200'));
  });

  test('a caller that does not read its responses for half a minute is cut off', async () => {
    const clock = new ManualClock();
    const { url } = await open({ clock });
    const accepted = Promise.withResolvers<net.Socket>();
    const accept = (message: unknown) => accepted.resolve((message as { socket: net.Socket }).socket);
    subscribe('net.server.socket', accept);
    const nonReading = (await caller(url)).pause();
    const served = await accepted.promise;
    unsubscribe('net.server.socket', accept);
    const isAnswered = () => connectionOf(served).unanswered.length === 0 || served.writableLength > 0;
    while (served.writableLength === 0) {
      const { bytesRead } = served;
      nonReading.write(get(url).repeat(8));
      while (served.bytesRead === bytesRead || !isAnswered()) await new Promise((resolve) => setImmediate(resolve));
    }
    await clock.advance(15_000);
    expect(served.destroyed).toBe(false);
    await clock.advance(15_000);
    await expect.poll(() => served.destroyed).toBe(true);
  });

  test.each([
    ['bytes that are not HTTP', () => 'nonsense\r\n\r\n', 400],
    [
      'headers that are too large',
      (url: string) => get(url).replace('\r\n\r\n', `\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
      431,
    ],
    ['an address that does not exist', (url: string) => get(url, '/nowhere'), 404],
    ['a method that is not allowed', (url: string) => get(url).replace('GET', 'DELETE'), 405],
    ['OPTIONS *', (url: string) => get(url, '*').replace('GET', 'OPTIONS'), 405],
    ['CONNECT', () => 'CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n', 405],
  ])('errors are JSON with a request id: %s', async (_what, bytes, status) => {
    const { url } = await open({});
    const { head, json } = await answerTo(url, bytes(url).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*x-request-id: ${json['requestId']}`, 'i'));
    expect(json).toMatchObject({ success: false, requestId: expect.stringMatching(/^req_/) });
    if (status === 405) expect(head).toMatch(/allow: GET, HEAD/);
  });
});

test.each([
  ['a key', `rk_live_${'Ab1'.repeat(12)}`],
  ['a secret in base64 with slashes', `whsec_${'Ab1cDe/'.repeat(4)}Ab1c`],
])('no listener logs %s from a request path', async (_what, key) => {
  for (const { open } of listeners) {
    const { url, logLines } = await open({});
    for (const path of [`/api/${key}`, `/${key}/x`, `/v1/${encodeURIComponent(`${key}?`)}`])
      for (const method of ['GET', 'POST']) await fetch(new URL(path, url), { method }).then((answer) => answer.text());
    await expect.poll(() => logLines.filter((line) => line.includes('"msg":"request"')).length).toBeGreaterThan(5);
    expect(logLines.join('')).not.toContain(key.slice(8, 20));
  }
});

test('a request that does not arrive in time gets a 408', async () => {
  const parts = ['GET / HT', 'POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9\r\n\r\n{'];
  const cut = listeners.map(async ({ open }) => {
    const { url } = await open({});
    return Promise.all(parts.map((part) => answerTo(url, part.replace('HOST', new URL(url).host))));
  });
  for (const [head, body] of await Promise.all(cut)) {
    expect(head?.json).toMatchObject({ code: 'request_timeout', requestId: expect.stringMatching(/^req_/) });
    expect(body?.head).toMatch(/^HTTP\/1\.1 40[4-8] /); // the metrics listener responds without reading the body
  }
});

async function answerTo(url: string, bytes: string): Promise<{ head: string; json: Record<string, unknown> }> {
  const [first = ''] = (await text(await caller(url, bytes))).split(/(?=HTTP\/1\.1 )/);
  const [head = '', body = ''] = first.split('\r\n\r\n');
  return { head, json: JSON.parse(body) };
}

test('createListener is the only way to create a listener', () => {
  const source = (folder: string): string[] =>
    readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name));
  const root = new URL('../../src', import.meta.url).pathname;
  const makers = source(root).filter((file) =>
    /\b(createServer|Fastify|new (\w+\.)?Server)\(/.test(readFileSync(file, 'utf8')),
  );
  expect(makers.map((file) => file.slice(root.length + 1)).sort()).toEqual([
    'cli/machine-findings.ts', // only checks whether a port is free
    'control/listen.ts', // a socket file or a pipe, to which only the daemon's user can connect
    'daemon/daemon.ts', // calls createServer from http/server.ts, not from Node.js
    'http/listener.ts',
    'http/server.ts', // defines that createServer
  ]);
});

test('each limit in the table in SECURITY.md has a figure for each listener, and a test that exists', () => {
  const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  const [, section = ''] = read('SECURITY.md').split('## Limits of every listener');
  const [heading = [], , ...rows] = [...(section.split('\n## ')[0] ?? '').matchAll(/^\|(.+)\|$/gm)].map(
    ([, row = '']) => row.split('|').map((cell) => cell.trim()),
  );
  expect(heading).toEqual(['limit', ...listeners.map(({ name }) => name), 'test']);
  expect(rows.length).toBeGreaterThan(6);
  for (const row of rows) {
    expect(row).toHaveLength(heading.length);
    for (const cell of row) expect(cell, row.join(' | ')).not.toBe('');
    const [, file = '', title = ''] = /^`(test\/[\w/-]+\.test\.ts)`: (.+)$/.exec(row.at(-1) ?? '') ?? [];
    expect(read(file), title).toContain(`('${title}`);
  }
});
