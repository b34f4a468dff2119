import { openRankd, place } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { group } from '../group.ts';
import { type LoadReport, load } from '../load.ts';
import { program, type ServerProcess, startServer } from '../processes.ts';
import { difference, interleaved, ratio, spreadOf } from '../rounds.ts';

const what = 'POST /v1/ranker';
const throughput = ({ requestsPerSecond }: LoadReport) => requestsPerSecond;
const p50 = ({ p50Ms }: LoadReport) => p50Ms;

/** `POST /v1/ranker` against a route that only makes the platform's calls, and against the time these calls take. */
export async function ranker({ rounds, seconds }: { rounds: number; seconds: number }): Promise<Finding[]> {
  const busy = await compared({ latencyMs: 0, connections: 64, rounds, seconds });
  const alone = await compared({ latencyMs: 0, connections: 1, rounds, seconds });
  const far = await compared({ latencyMs: roundTripMs, connections: 64, rounds, seconds: 3 * seconds });
  const against = 'bare Fastify, same platform calls';
  return [
    { what, against, figure: 'req/s', unit: '×', goal: { atLeast: 0.7 }, ...ratio(busy, throughput) },
    {
      what: `${what}, one caller`,
      against,
      figure: 'added p50',
      unit: 'ms',
      goal: { atMost: 1 },
      ...difference(alone, p50),
    },
    {
      what: `${what}, platform answers in ${roundTripMs} ms, 64 callers`,
      against: 'the sum of its three round trips',
      figure: 'p50',
      unit: '×',
      goal: { atMost: 1.05 },
      ...spreadOf(far.map(({ ours }) => ours.p50Ms / (3 * roundTripMs))),
    },
  ];
}

const roundTripMs = 150;

async function compared(options: { latencyMs: number; connections: number; rounds: number; seconds: number }) {
  const { latencyMs, connections, rounds, seconds } = options;
  await using platform = await startServer([program('platform.ts'), String(latencyMs)], { core: 'load' });
  await using rankd = await openRankd(configFor(platform));
  await using ours = await rankd.start({ RANKD_PLATFORM_API_KEY: 'bench' });
  await using baseline = await startServer([program('baselines/fastify-ranker.ts'), platform.url]);
  let firstMember = 1_000;
  const run = async (url: string) => {
    const report = await load(
      { url, connections, seconds, requests: [promotion(rankd.secret)], firstMember },
      { status: 200 },
    );
    firstMember = report.lastMember;
    return report;
  };
  return await interleaved({ ours: () => run(ours.url), baseline: () => run(baseline.url) }, rounds);
}

function promotion(secret: string) {
  const body = { rankerName: 'Bench', rankerId: 2, rankeeName: 'Member', rankeeId: 'MEMBER', newRankId: group.officer };
  return {
    path: `/v1/ranker?placeid=${place}`,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
}

function configFor({ url }: ServerProcess): string {
  return `group:\n  id: ${group.id}\nplatform:\n  base_url: ${url}\n  legacy_base_url: ${url}\n`;
}
