import { gunzipSync } from 'node:zlib';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { serveMetrics } from '../../src/metrics/serve-metrics.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectTo, rawAnswers } from '../support/raw-answers.ts';

async function served(render: () => Promise<string>) {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log = createLog({ level: 'info', readable: false, write: (line) => void lines.push(line) });
  const registry = new Registry();
  registry.metrics = render;
  const options = { host: '127.0.0.1', port: 0, trustedProxies: ['127.0.0.0/8'], log, clock };
  const listener = await serveMetrics(registry, async () => undefined, options);
  onTestFinished(() => listener[Symbol.asyncDispose]());
  return { clock, lines, url: listener.url };
}

test('scrapes within a second share one rendering, and there is never more than one at a time', async () => {
  let [begun, running, most] = [0, 0, 0];
  let finish = () => {};
  const { clock, url } = await served(async () => {
    begun += 1;
    running += 1;
    most = Math.max(most, running);
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    running -= 1;
    return `rendering ${begun}\n`;
  });
  const ask = async () => (await fetch(url)).text();
  const first = Array.from({ length: 10 }, ask);
  await expect.poll(() => begun).toBe(1);
  await clock.advance(5_000);
  first.push(ask());
  finish();
  expect(new Set(await Promise.all(first))).toEqual(new Set(['rendering 1\n']));
  await clock.advance(1_000);
  const second = [ask(), ask()];
  await expect.poll(() => begun, { timeout: 5_000 }).toBe(2);
  finish();
  expect(await Promise.all(second)).toEqual(['rendering 2\n', 'rendering 2\n']);
  await clock.advance(999);
  expect(await ask()).toBe('rendering 2\n');
  expect([begun, most]).toEqual([2, 1]);
});

test('a failed rendering returns an error in JSON, and is logged with its request id', async () => {
  let isBroken = true;
  const { clock, lines, url } = await served(async () => {
    if (isBroken) throw new Error('a fault');
    return 'fine\n';
  });
  const broken = await fetch(url);
  const { code, requestId } = (await broken.json()) as { code: string; requestId: string };
  expect([broken.status, code, broken.headers.get('x-request-id')]).toEqual([500, 'internal', requestId]);
  expect(lines.find((line) => line.includes('a fault'))).toContain(requestId);
  isBroken = false;
  await clock.advance(1_000);
  expect(await (await fetch(url)).text()).toBe('fine\n');
});

test('/metrics accepts a trailing slash and a query, is compressed on request, and answers HEAD with headers only', async () => {
  const text = 'x'.repeat(5_000);
  const { url } = await served(async () => text);
  for (const address of [url, `${url}/`, `${url}?a=b`]) expect(await (await fetch(address)).text()).toBe(text);
  const [packed] = await rawBytes(url, 'GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n');
  expect(packed?.head).toMatch(/content-encoding: gzip/i);
  expect(String(gunzipSync(packed?.body ?? ''))).toBe(text);
  const [head] = await rawBytes(url, 'HEAD /metrics HTTP/1.1\r\nConnection: close\r\n\r\n');
  expect(head?.head).toMatch(/^HTTP\/1\.1 200 [\s\S]*content-length: 5000/i);
  expect(head?.body).toHaveLength(0);
});

test.each([
  ['an address that does not exist', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 404, 'not_found'],
  ['a method other than GET', 'POST /metrics HTTP/1.1\r\nConnection: close\r\n\r\n', 405, 'method_not_allowed'],
  ['data that is not HTTP', 'nonsense\r\n\r\n', 400, 'invalid_request'],
  ['headers that are too large', `GET /metrics HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
])('%s gets an error in JSON with a request id', async (_what, bytes, status, code) => {
  const { url } = await served(async () => '');
  const [answer] = await rawAnswers(url, bytes);
  expect(answer).toMatchObject({ status, json: { code, requestId: answer?.headers['x-request-id'] } });
});

async function rawBytes(url: string, request: string): Promise<Array<{ head: string; body: Buffer }>> {
  const socket = connectTo(url);
  socket.write(request);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const all = Buffer.concat(chunks);
  const end = all.indexOf('\r\n\r\n');
  return [{ head: all.toString('latin1', 0, end), body: all.subarray(end + 4) }];
}
