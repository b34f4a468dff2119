import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';
import { startWebhookSink, type WebhookSink } from '../support/webhook-sink.ts';

const home = new CliHome();

afterEach(() => home[Symbol.dispose]());

const members = [1001, 1002, 1003];
/** Limits the backlog, because a webhook receives at most ten events per second. */
const betweenMs = 60;

test('every change reaches every webhook in order, although the daemon is killed repeatedly and commands change ranks without it', async () => {
  await using one = await startWebhookSink();
  await using other = await startWebhookSink();
  writeFileSync(home.path('rankd.yaml'), 'platform: { kind: simulated }\nwebhooks: { allow_private: [127.0.0.1] }\n');
  const key = await home.createKey();
  for (const [name, sink] of Object.entries({ one, other })) {
    const made = await home.here(['webhook', 'add', name, '--events', 'rank.changed', '--no-test'], {
      input: sink.url,
    });
    expect(made.code).toBe(0);
  }
  for (let round = 0; round < 4; round += 1) {
    await using daemon = await DaemonProcess.start(home);
    let isKilled = false;
    const load = members.map(async (rankeeId) => {
      for (let rank = 10; !isKilled; rank = rank === 10 ? 20 : 10)
        await Promise.all([daemon.rank(key, { rankeeId, newRankId: rank }).catch(() => undefined), delay(betweenMs)]);
    });
    await expect.poll(() => one.received.length).toBeGreaterThan(round * 4 + 2);
    await daemon.stop('SIGKILL');
    isKilled = true;
    await Promise.all(load);
    await home.run(['rank', 'set', '1001', String(round % 2 === 0 ? 50 : 10)]);
  }
  await using _daemon = await DaemonProcess.start(home);
  const applied = async () => {
    const events = await home.json<{
      events: Array<{ id: number; detail: { rolesBefore: number[]; rolesAfter: number[] } }>;
    }>(...['audit', 'list', '--action', 'rank.applied', '--limit', '10000']);
    const changed = events.events.filter(({ detail }) => String(detail.rolesBefore) !== String(detail.rolesAfter));
    return changed.map(({ id }) => id).toSorted((a, b) => a - b);
  };
  const receivedSequences = (sink: WebhookSink) => [...new Set(sink.received.map(({ event }) => event.data.sequence))];
  const all = await applied();
  for (const sink of [one, other]) {
    await expect.poll(() => receivedSequences(sink).length, { timeout: 40_000 }).toBe(all.length);
    expect(receivedSequences(sink)).toEqual(all);
  }
});
