import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LazyDashboard } from '../../../src/daemon/daemon.ts';
import { openTestPage } from '../../support/open-test-page.ts';
import { SkippableClock } from '../../support/paced-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

test('the dashboard listens only once a link is requested, and stops after twelve hours without a session', async () => {
  const clock = new SkippableClock();
  await using page = await openTestPage({ clock });
  expect(page.dashboard.standing).toBeNull();
  const visitor = await page.loggedIn();
  expect(page.dashboard.standing).toEqual({ url: visitor.origin, sessions: 1 });
  clock.skip(12 * hourMs - minuteMs);
  expect(await visitor.read('/api/session')).toMatchObject({ v: 1 });
  for (const ms of [2 * minuteMs, 11 * hourMs]) {
    clock.skip(ms);
    expect(await visitor.get('/api/session')).toMatchObject({ status: 401 });
    expect(page.dashboard.standing).toEqual({ url: visitor.origin, sessions: 0 });
  }
  clock.skip(hourMs);
  await expect.poll(() => page.dashboard.standing).toBeNull();
  await expect(visitor.get('/api/session')).rejects.toThrow();
  expect(await (await page.loggedIn()).read('/api/session')).toMatchObject({ v: 1 });
});

test('with dashboard.enabled, it listens permanently', async () => {
  const clock = new SkippableClock();
  await using page = await openTestPage({ clock, dashboard: { enabled: true } });
  await page.dashboard.open();
  clock.skip(24 * hourMs);
  await new Promise(setImmediate);
  expect(page.dashboard.standing).not.toBeNull();
});

test('the response to an expired link explains how to make a new one', async () => {
  const clock = new SkippableClock();
  await using page = await openTestPage({ clock });
  const visitor = await page.withLink();
  clock.skip(5 * minuteMs);
  expect(await visitor.logIn()).toMatchObject({ status: 403, json: { code: 'link_refused', try: 'rankd dashboard' } });
});

test('logging out all sessions also invalidates a link from before a restart', async () => {
  await using page = await openTestPage();
  await using restarted = new LazyDashboard(page.options);
  const visitor = await page.withLink();
  expect(await restarted.logAllOut('cli:ann@host')).toEqual({ sessions: 0 });
  expect(await visitor.logIn()).toMatchObject({ status: 403, json: { code: 'link_refused' } });
});

test('after half an hour without activity, the page only shows data; activity or a change resets the timer', async () => {
  const clock = new SkippableClock();
  await using page = await openTestPage({ clock });
  await page.app.createKey();
  const visitor = await page.loggedIn();
  const pause = () => visitor.post('/api/keys/pause', { key: 'main' });
  for (const act of [() => visitor.post('/api/active'), pause]) {
    clock.skip(29 * minuteMs);
    expect(await act()).toMatchObject({ status: 200 });
  }
  clock.skip(30 * minuteMs);
  for (const act of [() => visitor.post('/api/active'), pause])
    expect(await act()).toMatchObject({ status: 403, json: { code: 'session_idle', try: 'rankd dashboard' } });
  expect(await visitor.read('/api/keys')).toMatchObject({ keys: [{ state: 'paused' }] });
  expect(await visitor.post('/api/logout')).toMatchObject({ status: 200 });
});

test('the next free port is used if another program uses the configured one', async () => {
  const { other, port } = await anotherProgram();
  await using page = await openTestPage({ dashboard: { port } });
  const taken = Number(new URL((await page.withLink()).origin).port);
  expect(taken).toBeGreaterThan(port);
  expect(taken).toBeLessThanOrEqual(port + 20);
  other.close();
});

test('with dashboard.url, the link has that host name, and the port is fixed', async () => {
  const url = 'https://rankd-admin.example.com';
  const { other, port } = await anotherProgram();
  await using blocked = await openTestPage({ dashboard: { port, url } });
  await expect(blocked.dashboard.link('cli:ann@host')).rejects.toMatchObject({ code: 'port_taken' });
  other.close();
  await using page = await openTestPage({ dashboard: { url, port: 0 } });
  const link = await page.dashboard.link('cli:ann@host');
  expect(link.url).toMatch(/^https:\/\/rankd-admin\.example\.com\/login#[\w-]{22}$/);
});

async function anotherProgram(): Promise<{ other: Server; port: number }> {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  return { other, port: (other.address() as AddressInfo).port };
}

test('the built files are served compressed; the page is never cached, and the others are cached forever', async () => {
  const pageFolder = join(tempDir(), 'dashboard');
  mkdirSync(pageFolder);
  const script = 'console.log(1);'.repeat(200);
  for (const [name, content] of Object.entries({
    'index.html': '<!doctype html><title>rankd</title>',
    'main-AB12.js': script,
    'secret.txt': 'no',
    'main-AB12.js.map': '{}',
  }))
    writeFileSync(join(pageFolder, name), content);
  await using page = await openTestPage({ pageFolder });
  const visitor = await page.withLink();
  for (const path of ['/', '/login', '/index.html']) {
    const { status, headers, text } = await visitor.get(path);
    expect({ status, text }, path).toEqual({ status: 200, text: '<!doctype html><title>rankd</title>' });
    expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' });
  }
  for (const encoding of ['br', 'gzip']) {
    const response = await fetch(`${visitor.origin}/main-AB12.js`, { headers: { 'accept-encoding': encoding } });
    expect(response.headers.get('content-encoding')).toBe(encoding);
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(Number(response.headers.get('content-length'))).toBeLessThan(200);
    expect(await response.text()).toBe(script); // already decompressed by fetch
  }
  const uncompressed = { headers: { 'accept-encoding': 'br;q=0, gzip; q=0.0' } };
  expect((await fetch(`${visitor.origin}/main-AB12.js`, uncompressed)).headers.get('content-encoding')).toBe(null);
  expect((await visitor.get('/main-AB12.js')).text).toBe(script);
  expect(await visitor.send('/main-AB12.js', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  for (const path of ['/secret.txt', '/main-AB12.js.map', '/nothing.js'])
    expect(await visitor.get(path)).toMatchObject({ status: 404 });
});

test('a stream reports changes, sends heartbeats while nothing changes, and announces its end', async () => {
  const clock = new SkippableClock();
  await using page = await openTestPage({ clock });
  const visitor = await page.loggedIn();
  const key = await page.app.createKey();
  using stream = await visitor.listen();
  using other = await (await page.loggedIn()).listen();
  await expect.poll(() => stream.events).toEqual(['hello']);
  expect(stream.text).toMatch(/^retry: 2000\n\nevent: hello\ndata: \d+\n\n$/);
  await new Promise((resolve) => setTimeout(resolve, 20)); // the first check only records the current state
  await page.app.rank(key, { newRankId: 20 });
  await expect.poll(() => stream.events).toEqual(expect.arrayContaining(['changes', 'chart', 'keys', 'suspensions']));
  const numbers = [...stream.text.matchAll(/^data: (\d+)$/gm)].map(([, number]) => Number(number));
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  clock.skip(20_000);
  await expect.poll(() => stream.text).toContain(': still here\n\n');
  await visitor.post('/api/logout');
  await expect.poll(() => [stream.events.at(-1), stream.isOver]).toEqual(['logout', true]);
  expect(other.isOver).toBe(false);
  await page.dashboard[Symbol.asyncDispose]();
  await expect.poll(() => [other.events.at(-1), other.isOver]).toEqual(['bye', true]);
});

test('a page that does not read its stream is disconnected', async () => {
  await using page = await openTestPage();
  const visitor = await page.loggedIn();
  const slow = await visitor.listen();
  slow.stopReading();
  const views = Array.from({ length: 200 }, (_, n) => `view${n}${'x'.repeat(400)}`);
  await expect
    .poll(async () => {
      page.dashboard.streams.notify(views);
      return page.dashboard.streams.size;
    })
    .toBe(0);
});
