import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ManualClock } from './manual-clock.ts';

test('no time passes while a request is in flight, even on a busy machine', async () => {
  const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clock = new ManualClock();
  const ask = async () => {
    await delay(20);
    for (const busyUntil = performance.now() + 20; performance.now() < busyUntil; );
    const timeout = clock.sleep(3_000).then(() => 'timed out');
    const { port } = server.address() as AddressInfo;
    return Promise.race([timeout, fetch(`http://127.0.0.1:${port}`).then(() => 'answered')]);
  };
  expect(await clock.passUntil(ask())).toBe('answered');
  server.closeAllConnections();
  server.close();
});
