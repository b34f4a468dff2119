import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';

const connections = 64;

test('while 64 connections hammer the daemon, no request that is begun after `key revoke` returned succeeds', async () => {
  using home = new CliHome();
  const { secret } = await home.json<{ secret: string }>('key', 'create', 'game');
  await home.json('whitelist', 'add', '42');
  const env = { RANKD_LIMITS_VERIFY: '0', RANKD_LIMITS_FAILED_AUTH: '0' };
  await using daemon = await DaemonProcess.start(home, { env });
  const answered: Array<{ begunAt: number; status: number | undefined }> = [];
  let isOver = false;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const callers = Array.from({ length: connections }, async () => {
    while (!isOver) {
      const begunAt = performance.now();
      answered.push({ begunAt, status: await verify(`${daemon.url}/v1/apikey`, { agent, secret }) });
    }
  });
  await expect.poll(() => answered.length).toBeGreaterThan(connections);
  await home.json('key', 'revoke', 'game', '-y');
  const revokedAt = performance.now();
  await delay(300);
  isOver = true;
  await Promise.all(callers);
  agent.destroy();

  const statusesOf = (requests: typeof answered) => new Set(requests.map(({ status }) => status));
  const isLater = ({ begunAt }: { begunAt: number }) => begunAt > revokedAt;
  expect(answered[0]?.status).toBe(200);
  expect(answered.filter(isLater).length).toBeGreaterThan(connections);
  expect(statusesOf(answered.filter(isLater))).toEqual(new Set([401]));
});

function verify(url: string, { agent, secret }: { agent: Agent; secret: string }): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers: { authorization: `Bearer ${secret}` } }, (response) => {
      text(response).then(() => resolve(response.statusCode), reject);
    });
    sent.on('error', reject).end('{"placeid":42}');
  });
}
