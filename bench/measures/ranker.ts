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
  await using near = await openSides({ latencyMs: 0 });
  const busy = await near.compare({ connections: 64, rounds, seconds });
  const alone = await near.compare({ connections: 1, rounds, seconds });
  await using far = await openSides({ latencyMs: roundTripMs });
  const waiting = await far.compare({ connections: 64, rounds, seconds: 3 * seconds });
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
      ...spreadOf(waiting.map(({ ours }) => p50(ours) / (3 * roundTripMs))),
    },
  ];
}

const roundTripMs = 150;

interface Load {
  connections: number;
  rounds: number;
  seconds: number;
}

/** Both sides on a platform that answers after `latencyMs`. */
async function openSides({ latencyMs }: { latencyMs: number }) {
  await using opened = new AsyncDisposableStack();
  const platform = opened.use(await startServer([program('platform.ts'), String(latencyMs)], { core: 'load' }));
  const rankd = opened.use(await openRankd(configFor(platform)));
  const ours = opened.use(await rankd.start({ RANKD_PLATFORM_API_KEY: 'bench' }));
  const baseline = opened.use(await startServer([program('baselines/fastify-ranker.ts'), platform.url]));
  let firstMember = 1_000;
  const run = async ({ url }: ServerProcess, { connections, seconds }: Load) => {
    const requests = [promotion(rankd.secret)];
    const report = await load({ url, connections, seconds, requests, firstMember }, { status: 200 });
    firstMember = report.lastMember;
    return report;
  };
  const closers = opened.move();
  return {
    compare: (of: Load) => interleaved({ ours: () => run(ours, of), baseline: () => run(baseline, of) }, of.rounds),
    [Symbol.asyncDispose]: () => closers.disposeAsync(),
  };
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
