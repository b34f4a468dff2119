import { createServer, type Server } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { RequestNotSent, WriteSender } from '../../../src/platforms/upstream/send-write.ts';

/** Starts a server that records its requests, and responds unless `isSilent`. */
async function receiver({ isSilent = false } = {}) {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    received.push(body);
    if (!isSilent) response.setHeader('x-ratelimit-remaining', '7').end('{"is":"answer"}');
  });
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, sockets, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/write` };
}

const sender = new WriteSender(systemClock);

function send(
  url: string,
  leftMs: () => number,
  { noteLate = (): void => undefined, signal = new AbortController().signal } = {},
) {
  return sender.send({ url, headers: {}, body: '{"role":1}', maxBodyBytes: 1_000, signal }, { leftMs, noteLate });
}

test('the response to a write is read completely, and the next write reuses the connection', async () => {
  const { url, received, sockets } = await receiver();
  for (let writes = 1; writes <= 2; writes += 1) {
    const { status, headers, body } = await send(url, () => 5_000);
    expect([status, headers.get('x-ratelimit-remaining'), body]).toEqual([200, '7', '{"is":"answer"}']);
  }
  expect(received).toEqual(['{"role":1}', '{"role":1}']);
  expect(sockets.size).toBe(1);
});

test('a write is not sent if less than a second of the lease is left once the connection is open', async () => {
  const { url, received, sockets } = await receiver();
  const leases = [5_000, 999]; // before and after the connection is made
  const refused = send(url, () => leases.shift() ?? 999);
  await expect(refused).rejects.toBeInstanceOf(RequestNotSent);
  await expect(refused).rejects.toMatchObject({ cause: { code: 'store_unavailable' } });
  await expect.poll(() => [...sockets].every(({ destroyed }) => destroyed)).toBe(true);
  expect(received).toEqual([]);
});

test('a process that was suspended at the moment of a write notices right afterwards', async () => {
  const { url, received } = await receiver();
  const leases = [5_000, 5_000, 0];
  const noteLate = vi.fn();
  await send(url, () => leases.shift() ?? 5_000, { noteLate }).catch(() => undefined);
  expect(noteLate).toHaveBeenCalledOnce();
  await expect.poll(() => received).toHaveLength(1);
});

test('a write in flight is aborted when the lease ends, and may have been carried out', async () => {
  const { url, received, sockets } = await receiver({ isSilent: true });
  const endsAt = performance.now() + 1_050;
  const error = await send(url, () => Math.max(0, endsAt - performance.now())).catch((thrown: unknown) => thrown);
  expect(performance.now()).toBeGreaterThanOrEqual(endsAt);
  expect(error).not.toBeInstanceOf(RequestNotSent);
  expect(received).toHaveLength(1);
  await expect.poll(() => [...sockets].every(({ destroyed }) => destroyed)).toBe(true);
});

test('a failure before the write is sent throws RequestNotSent; a later one does not', async () => {
  const silent = await receiver({ isSilent: true });
  const before = send(silent.url, () => 5_000, { signal: AbortSignal.abort() });
  await expect(before).rejects.toBeInstanceOf(RequestNotSent);
  await expect(send('http://127.0.0.1:1/', () => 5_000)).rejects.toBeInstanceOf(RequestNotSent);
  const stop = new AbortController();
  const after = send(silent.url, () => 5_000, { signal: stop.signal });
  await expect.poll(() => silent.received).toHaveLength(1);
  stop.abort();
  await expect(after).rejects.not.toBeInstanceOf(RequestNotSent);
});

test('a switch to another protocol fails the write at once', async () => {
  const { url, server } = await receiver();
  server.removeAllListeners('request').on('request', ({ socket }) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n');
  });
  const error = await send(url, () => Number.POSITIVE_INFINITY).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(RequestNotSent);
});

test('writes use the proxy that Node.js is configured with, as reads do', async () => {
  const { url, received } = await receiver();
  const options: https.AgentOptions & { proxyEnv?: NodeJS.ProcessEnv } = https.globalAgent.options;
  options.proxyEnv = { HTTP_PROXY: new URL(url).origin }; // as set by NODE_USE_ENV_PROXY=1
  onTestFinished(() => {
    delete options.proxyEnv;
  });
  const request = { url: 'http://roblox.invalid/write', headers: {}, body: '{"role":1}', maxBodyBytes: 1_000 };
  const signal = AbortSignal.timeout(5_000);
  const lease = { leftMs: () => Number.POSITIVE_INFINITY, noteLate: () => undefined };
  const { status } = await new WriteSender(systemClock).send({ ...request, signal }, lease);
  expect([status, received]).toEqual([200, ['{"role":1}']]);
});
