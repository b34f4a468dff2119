import { openRankd, place } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { group } from '../group.ts';
import { type Load, type LoadOptions, type LoadReport, openLoad } from '../load.ts';
import { program, type ServerProcess, startServer } from '../processes.ts';
import { difference, interleaved, overStarts, ratio, spreadOf } from '../rounds.ts';

const what = 'POST /v1/ranker';
const throughput = ({ requestsPerSecond }: LoadReport) => requestsPerSecond;
const p50 = ({ p50Ms }: LoadReport) => p50Ms;

/**
 * Measures `POST /v1/ranker` against a route that only makes the platform calls, and against the duration of those
 * calls.
 */
export async function ranker({ rounds }: { rounds: number }): Promise<Finding[]> {
  const measured = await overStarts(rounds, measureOnce);
  const resultsOf = (turns: 'busy' | 'alone' | 'waited') => measured.flatMap((once) => once[turns]);
  const waiting = await measureWaiting();
  const against = 'bare Fastify, same platform calls';
  const farAway = { against: 'the sum of its three round trips', figure: 'p50', unit: '×' } as const;
  return [
    { what, against, figure: 'req/s', unit: '×', goal: { atLeast: 0.57 }, ...ratio(resultsOf('busy'), throughput) },
    {
      what: `${what}, one caller`,
      against,
      figure: 'added p50',
      unit: 'ms',
      goal: { atMost: 4 },
      ...difference(resultsOf('alone'), p50),
    },
    {
      what: `${what}, one caller`,
      against: `${against}, and two waits for the disk`,
      figure: 'added p50',
      unit: 'ms',
      ...difference(resultsOf('waited'), p50),
    },
    {
      ...{ ...farAway, what: `${what}, platform answers in ${roundTripMs} ms, one caller`, goal: { atMost: 1.05 } },
      ...spreadOf(waiting.one.map((ms) => ms / (3 * roundTripMs))),
    },
    {
      ...{ ...farAway, what: `${what}, platform answers in ${roundTripMs} ms, 64 callers` },
      ...spreadOf(waiting.many.map((ms) => ms / (3 * roundTripMs))),
    },
  ];
}

const roundTripMs = 150;
/**
 * A few long rounds, because 64 callers that start together need time to spread out. The first round is not counted.
 */
const waitingRounds = 3;
const longSlices = { one: { connections: 1, amount: 30 }, many: { connections: 64, amount: 1_920 } } satisfies Record<
  string,
  Slice
>;

/**
 * A turn of about half a second. It is long enough that its beginning, when all requests arrive at once, and its end,
 * when few are in flight, matter little.
 */
export const manyCallers: Slice = { connections: 64, amount: 640 };
const oneCaller: Slice = { connections: 1, amount: 200 };
/**
 * The numbers of warm-up rounds. One caller needs few, because the rounds with many callers have warmed up the server.
 */
const uncounted = { many: 12, one: 3 };

type Slice = Pick<LoadOptions, 'connections' | 'amount'>;

async function measureOnce(rounds: number) {
  await using load = openLoad();
  await using near = await openSides({ load, latencyMs: 0 });
  return {
    busy: await interleaved(near.turns(manyCallers), rounds, uncounted.many),
    alone: await interleaved(near.turns(oneCaller), rounds, uncounted.one),
    waited: await interleaved(near.turns(oneCaller, 'synced'), rounds, uncounted.one),
  };
}

async function measureWaiting(): Promise<Record<keyof typeof longSlices, number[]>> {
  await using load = openLoad();
  await using far = await openSides({ load, latencyMs: roundTripMs });
  const rounds = async (slice: Slice) => {
    const waiting: number[] = [];
    while (waiting.length <= waitingRounds) waiting.push(p50(await far.ours(slice)));
    return waiting.slice(1);
  };
  return { many: await rounds(longSlices.many), one: await rounds(longSlices.one) };
}

/**
 * Starts rankd and its baselines on a platform that responds after `latencyMs`. `config`: more lines for `rankd.yaml`.
 */
export async function openSides({ load, latencyMs, config = '' }: { load: Load; latencyMs: number; config?: string }) {
  await using opened = new AsyncDisposableStack();
  const platform = opened.use(await startServer([program('platform.ts'), String(latencyMs)], { core: 'load' }));
  const rankd = opened.use(await openRankd(configFor(platform) + config));
  const ours = opened.use(await rankd.start({ RANKD_PLATFORM_API_KEY: 'bench' }));
  const startBaseline = (...more: string[]) =>
    startServer([program('baselines/fastify-ranker.ts'), platform.url, ...more]);
  const baselines = {
    bare: opened.use(await startBaseline()),
    synced: opened.use(await startBaseline(rankd.home.path('page'))),
  };
  let firstMember = 1_000;
  const run = async ({ url }: ServerProcess, slice: Slice) => {
    const requests = [promotion(rankd.secret)];
    const report = await load.send({ url, ...slice, requests, firstMember }, { status: 200 });
    firstMember = report.lastMember;
    return report;
  };
  const closers = opened.move();
  return {
    ours: (slice: Slice) => run(ours, slice),
    turns: (slice: Slice, against: keyof typeof baselines = 'bare') => ({
      ours: () => run(ours, slice),
      baseline: () => run(baselines[against], slice),
    }),
    [Symbol.asyncDispose]: () => closers.disposeAsync(),
  };
}

export function promotion(secret: string) {
  const body = { rankerName: 'Bench', rankerId: 2, rankeeName: 'Member', rankeeId: 'MEMBER', newRankId: group.officer };
  return {
    path: `/v1/ranker?placeid=${place}`,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
}

export function configFor({ url }: ServerProcess): string {
  return `group:\n  id: ${group.id}\nplatform:\n  base_url: ${url}\n  legacy_base_url: ${url}\n`;
}
