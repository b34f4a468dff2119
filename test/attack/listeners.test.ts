import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { keepUp, repeat } from '../support/keep-up.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { CliHome } from '../support/run-cli.ts';
import { figuresOf } from '../tools/process-figures.ts';

const env = { RANKD_METRICS_ENABLED: 'true', RANKD_METRICS_PORT: '0', RANKD_DASHBOARD_PORT: '0' };

/** Longer than a response takes, even on a busy machine. */
const timeoutMs = 5_000;

async function isAnswered(url: string): Promise<boolean> {
  const headers = { connection: 'close' };
  const answer = fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) });
  return (
    (await answer.then(
      ({ status }) => status,
      () => 0,
    )) === 200
  );
}

test('floods of metrics requests delay no game and do not exhaust memory', async () => {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home, { env });
  const scrapes = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(400);
  await using _callers = keepUp(daemon.metricsUrl ?? '', 90, (socket) => {
    socket.pause();
    let writes = 0;
    return repeat(100, () => {
      writes += 1;
      if (writes <= 12) socket.write(scrapes);
    });
  });
  let most = 0;
  for (let count = 0; count < 20; count += 1) {
    expect(await isAnswered(`${daemon.url}/healthz`)).toBe(true);
    most = Math.max(most, figuresOf(daemon.process.pid ?? 0).residentMiB);
    await delay(100);
  }
  expect(most).toBeLessThan(256);
});

test('slow senders at the page and idle connections at metrics do not lock out other callers', async () => {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home, { env });
  const { origin } = await PageVisitor.withLink(home);
  const head = `POST /api/login HTTP/1.1\r\nHost: ${new URL(origin).host}\r\nContent-Length: 9000\r\n\r\n`;
  await using _senders = keepUp(origin, 130, (socket) => {
    socket.resume().write(head);
    return repeat(1_000, () => socket.write(' '));
  });
  await using _idle = keepUp(daemon.metricsUrl ?? '', 300, () => () => undefined);
  const answered = { page: 0, games: 0 };
  for (let count = 0; count < 20; count += 1) {
    answered.page += Number(await isAnswered(`${origin}/`));
    answered.games += Number(await isAnswered(`${daemon.url}/healthz`));
    await delay(100);
  }
  expect(answered).toEqual({ page: 20, games: 20 });
  expect(figuresOf(daemon.process.pid ?? 0).handles).toBeLessThan(100 + 20 + 60);
});
