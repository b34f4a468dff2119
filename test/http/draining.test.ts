import type net from 'node:net';
import { describe, expect, test } from 'vitest';
import { expectError, rankBody } from '../support/answers.ts';
import { openTestApp, place, send, type TestApp } from '../support/open-test-app.ts';
import { holdWrites } from '../support/platform-with.ts';
import { connectTo } from '../support/raw-answers.ts';
import { startPost } from '../support/send.ts';

const ranker = `/v1/ranker?placeid=${place}`;
const shuttingDown = { status: 503, code: 'shutting_down', error: 'Shutting down', waits: true };

describe('while the daemon stops', () => {
  test('running requests finish, new ones are refused, and both connections are closed', async () => {
    const { platform, begun, release } = holdWrites();
    await using app = await openTestApp({ platform });
    const key = await app.createKey();
    const running = app.rank(key);
    await begun;
    const stopped = app.stop();

    for (const path of [ranker, `//v1/ranker/?placeid=${place}`, '/v1/apikey']) {
      const refused = await app.post(path, { key, body: rankBody({ rankeeId: 1002, newRankId: 10 }) });
      expectError(refused, shuttingDown);
      expect(refused.headers.connection).toBe('close');
    }
    expect((await send(`${app.url}/healthz`, {})).status).toBe(200);
    expectError(await send(`${app.url}/readyz`, {}), shuttingDown);

    release();
    expect(await running).toMatchObject({ status: 200, json: { success: true }, headers: { connection: 'close' } });
    await stopped;
    await expect(app.rank(key)).rejects.toThrow('ECONNREFUSED');
  });

  test('a change continues after its caller disconnects, and is recorded', async () => {
    const { platform, begun, release } = holdWrites();
    const app = await openTestApp({ platform });
    const request = startPost(app.url + ranker, await app.createKey());
    request.end(JSON.stringify(rankBody()));
    await begun;
    request.destroy();
    const stopped = app.stop();
    release();
    await stopped;

    await using next = await openTestApp({ dataDir: app.dataDir });
    expect(await next.store.listChanges({ limit: 5 })).toMatchObject([{ state: 'applied', rankeeId: 1001 }]);
  });
});

describe('stopping does not wait for', () => {
  const connections: Array<[string, string]> = [
    ['a connection on which nothing was sent', ''],
    ['a request whose head never ends', 'POST /v1/apikey HTTP/1.1\r\nContent-'],
    ['an idle keep-alive connection', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a request whose body never arrives', 'POST /v1/apikey HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{'],
  ];
  test.each(connections)('%s', async (_name, sent) => {
    await using app = await openTestApp({ config: { server: { deadlineMs: 50 } } });
    const socket = await connect(app);
    socket.write(sent);
    await send(`${app.url}/healthz`, {});
    await app.stop();
    expect(app.app.requests.count).toBeLessThanOrEqual(1);
    socket.destroy();
  });

  async function connect(app: TestApp): Promise<net.Socket> {
    const socket = connectTo(app.url);
    await new Promise((resolve) => socket.once('connect', resolve));
    return socket;
  }
});

test('a second daemon on the same data directory is refused until the first has stopped', async () => {
  const first = await openTestApp();
  await expect(openTestApp({ dataDir: first.dataDir })).rejects.toMatchObject({ code: 'conflict' });
  await first.stop();
  await using second = await openTestApp({ dataDir: first.dataDir });
  expect((await send(`${second.url}/readyz`, {})).status).toBe(200);
});
