import { setTimeout as sleep } from 'node:timers/promises';
import { discordPath } from '../../test/support/fake-discord.ts';
import { openRankd, type Rankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { openLoad } from '../load.ts';
import { cpuMs, program, startServer } from '../processes.ts';
import { interleaved, ratio } from '../rounds.ts';
import { configFor, manyCallers, promotion } from './ranker.ts';

/**
 * Measures `POST /v1/ranker` with three webhooks (two programs and a Discord channel) against the same daemon without
 * webhooks. Two daemons would differ from each other by more than the cost of webhooks, and one that is still
 * delivering would take CPU time from the other's turn.
 */
export async function webhooks({ rounds }: { rounds: number }): Promise<Finding[]> {
  await using load = openLoad();
  await using platform = await startServer([program('platform.ts'), '0'], { core: 'load' });
  await using targets = await startServer([program('webhook-targets.ts')], { core: 'load' });
  await using rankd = await openRankd(`${configFor(platform)}webhooks:\n  allow_private: [127.0.0.1]\n`);
  await using daemon = await rankd.start(env);
  let firstMember = 1_000;
  const send = async (amount: number) => {
    const { url, pid } = daemon;
    const cpuBeforeMs = cpuMs(pid);
    const options = { ...manyCallers, url, amount, requests: [promotion(rankd.secret)], firstMember };
    const report = await load.send(options, { status: 200 });
    firstMember = report.lastMember;
    return { ...report, cpuMsEach: (cpuMs(pid) - cpuBeforeMs) / amount };
  };
  let isReporting = false;
  const turn = (reports: boolean) => async () => {
    if (reports !== isReporting) await (reports ? addWebhooks(rankd, targets.url) : removeWebhooks(rankd));
    isReporting = reports;
    return await send(turnRequests);
  };
  const sides = { ours: turn(true), baseline: turn(false) };
  await sides.ours();
  await send(warmUpRequests);
  const measured = await interleaved(sides, rounds, 0);
  const common = { what: 'POST /v1/ranker with three webhooks', against: 'the same with none', unit: '×' } as const;
  return [
    { ...common, figure: 'req/s', goal: { atLeast: 0.97 }, ...ratio(measured, (report) => report.requestsPerSecond) },
    { ...common, figure: 'CPU of the server for one request', ...ratio(measured, (report) => report.cpuMsEach) },
  ];
}

const env = { RANKD_PLATFORM_API_KEY: 'bench' };
const addresses = { bot: '/bot', other: '/other', log: discordPath };
/** Few requests, to keep turns short, so that other load on the machine affects both sides equally. */
const turnRequests = manyCallers.amount;
const warmUpRequests = 12_800;
/** Longer than it takes a daemon without webhooks to notice a new one. */
const noticedMs = 1_200;

async function addWebhooks(rankd: Rankd, url: string): Promise<void> {
  for (const [name, path] of Object.entries(addresses)) {
    const kind = name === 'log' ? 'discord' : 'standard';
    await webhook(rankd, ['add', name, '--kind', kind, '--events', 'all', '--no-test'], `${url}${path}`);
  }
  await sleep(noticedMs);
}

async function removeWebhooks(rankd: Rankd): Promise<void> {
  for (const name of Object.keys(addresses)) await webhook(rankd, ['remove', name, '-y']);
}

async function webhook({ home }: Rankd, line: string[], input = ''): Promise<void> {
  const { code, stderr } = await home.here(['webhook', ...line], { input, env });
  if (code !== 0) throw new Error(stderr);
}
