import { once } from 'node:events';
import net from 'node:net';
import type { FastifyInstance } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { createServer } from '../../src/http/server.ts';
import { rankBody } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, type TestApp, type TestAppOptions } from '../support/open-test-app.ts';
import { holdWrites } from '../support/platform-with.ts';

interface WorldOptions {
  maxConnections: number;
  trustedProxies?: string[];
  platform?: TestAppOptions['platform'];
}

/** A server that allows only a few connections. */
class World {
  readonly clock: ManualClock;
  readonly app: TestApp;
  readonly #server: FastifyInstance;

  private constructor(app: TestApp, clock: ManualClock, server: FastifyInstance) {
    this.app = app;
    this.clock = clock;
    this.#server = server;
  }

  static async open({ maxConnections, trustedProxies = ['127.0.0.0/8'], platform }: WorldOptions): Promise<World> {
    const clock = new ManualClock();
    const app = await openTestApp({ clock, ...(platform && { platform }) });
    const server = createServer(app.live, { maxConnections, trustedProxies });
    await server.listen({ host: '127.0.0.1', port: 0 });
    onTestFinished(async () => {
      await server.close();
      await expect.poll(() => app.app.requests.count).toBe(0); // waits for the interrupted requests to end
      await app.close();
    });
    return new World(app, clock, server);
  }

  /** Connects and sends the text. On the clock, each connection is slightly younger than the previous one. */
  async caller({ from = '127.0.0.1', sends = '' } = {}): Promise<Caller> {
    const accepted = once(this.#server.server, 'connection') as Promise<[net.Socket]>;
    const { port } = this.#server.server.address() as net.AddressInfo;
    const socket = net.connect({ port, host: '127.0.0.1', localAddress: from });
    const caller = new Caller(socket, (await accepted)[0]);
    await caller.send(sends);
    await this.clock.advance(10);
    return caller;
  }

  closings(): Array<Record<string, unknown>> {
    return this.app.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => /closed a connection/.test(msg));
  }
}

class Caller {
  received = '';
  isClosed = false;
  readonly #socket: net.Socket;
  readonly #accepted: net.Socket;

  constructor(socket: net.Socket, accepted: net.Socket) {
    this.#socket = socket;
    this.#accepted = accepted;
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined); // the server is expected to close connections
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      this.received += chunk;
    });
    socket.once('close', () => {
      this.isClosed = true;
    });
  }

  /** Sends the text, and resolves once the server has received it. */
  async send(text: string): Promise<void> {
    const upTo = this.#accepted.bytesRead + text.length;
    this.#socket.write(text);
    await expect.poll(() => this.#accepted.bytesRead, { interval: 1 }).toBe(upTo);
  }

  /** Sends a complete request. Returns the status, or 0 if the server closes the connection instead. */
  async ask(): Promise<number> {
    this.received = '';
    this.#socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => this.received !== '' || this.isClosed, { interval: 1 }).toBe(true);
    return Number(/^HTTP\/1\.1 (\d+)/.exec(this.received)?.[1] ?? 0);
  }

  async closed(): Promise<string> {
    await expect.poll(() => this.isClosed, { interval: 1 }).toBe(true);
    return this.received;
  }
}

const body = 'POST /v1/apikey HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n ';
const ended = /^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/;

test('at the connection limit, the request that has been arriving the longest gets 408, and one warning is logged', async () => {
  const world = await World.open({ maxConnections: 3 });
  const idle = await world.caller();
  expect(await idle.ask()).toBe(200);
  const slow = [await world.caller({ sends: body }), await world.caller({ sends: 'GET /healthz HT' })];
  for (const next of slow) {
    const newcomer = await world.caller();
    expect(await next.closed()).toMatch(ended);
    expect(await newcomer.ask()).toBe(200);
  }
  expect(world.closings()).toMatchObject([{ level: 'warn', maxConnections: 3, address: '127.0.0.1' }]);
  expect(idle.isClosed).toBe(false);
});

test('at the connection limit, if no request is arriving, the connection that has been idle the longest is closed', async () => {
  const world = await World.open({ maxConnections: 3 });
  const callers = [await world.caller(), await world.caller(), await world.caller()];
  for (const index of [1, 0, 2]) {
    expect(await callers[index]?.ask()).toBe(200);
    await world.clock.advance(10);
  }
  expect(await (await world.caller()).ask()).toBe(200);
  await callers[1]?.closed();
  expect(await callers[0]?.ask()).toBe(200);
});

test('a new connection is refused only if all others are waiting for rankd, and they still get their responses', async () => {
  const { platform, begun, release } = holdWrites();
  const world = await World.open({ maxConnections: 1, platform });
  const change = JSON.stringify(rankBody());
  const head = `POST /v1/ranker?placeid=42 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await world.app.createKey()}`;
  const waiting = await world.caller({ sends: `${head}\r\nContent-Length: ${change.length}\r\n\r\n${change}` });
  await begun;
  expect(await (await world.caller()).closed()).toBe('');
  release();
  await expect.poll(() => waiting.received).toMatch(/^HTTP\/1\.1 200 [\s\S]*"success":true/);
});

test('above three quarters of the connection limit, a request that takes longer than a second to arrive gets 408', async () => {
  const world = await World.open({ maxConnections: 8 });
  const slow = await world.caller({ sends: body });
  const others = [];
  for (let count = 0; count < 5; count += 1) others.push(await world.caller());
  await world.caller();
  expect(slow.isClosed).toBe(false);
  await world.clock.advance(1_000);
  await world.caller();
  expect(await slow.closed()).toMatch(ended);
  expect(others.map(({ isClosed }) => isClosed)).toEqual(Array(5).fill(false));
});

test('one network has at most a quarter of the connections; beyond that, rankd closes connections of that network only', async () => {
  const world = await World.open({ maxConnections: 8, trustedProxies: [] });
  const other = await world.caller({ from: '127.0.0.2' });
  const first = await world.caller();
  const second = await world.caller();
  const third = await world.caller();
  expect(await first.closed()).toMatch(ended);
  expect([await other.ask(), await second.ask(), await third.ask()]).toEqual([200, 200, 200]);
  expect(world.closings()).toMatchObject([
    { address: '127.0.0.1', msg: expect.stringMatching(/server\.trusted_proxies/) },
  ]);
});

test('a network that has closed its connections may open new ones', async () => {
  const world = await World.open({ maxConnections: 4, trustedProxies: [] });
  for (let count = 0; count < 5; count += 1) {
    const caller = await world.caller({ sends: 'garbage\r\n\r\n' });
    expect(await caller.closed()).toMatch(/^HTTP\/1\.1 400 /);
  }
  expect(world.closings()).toEqual([]);
});

test('a trusted proxy may use all connections', async () => {
  const world = await World.open({ maxConnections: 5, trustedProxies: ['10.0.0.0/8', '::1', '127.0.0.1'] });
  const callers = [];
  for (let count = 0; count < 5; count += 1) callers.push(await world.caller());
  expect(await Promise.all(callers.map((caller) => caller.ask()))).toEqual(Array(5).fill(200));
});

test('many slow senders that reconnect whenever they are cut off delay no other caller', async () => {
  const world = await World.open({ maxConnections: 20 });
  const statuses: number[] = [];
  for (let count = 0; count < 100; count += 1) {
    await world.caller({ sends: body });
    if (count % 5 === 0) statuses.push(await (await world.caller()).ask());
  }
  expect(statuses).toEqual(Array(20).fill(200));
});
