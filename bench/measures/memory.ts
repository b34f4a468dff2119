import { figuresOf } from '../../test/tools/process-figures.ts';
import { openRankd } from '../daemon.ts';
import { fill, small } from '../fill.ts';
import type { Finding } from '../findings.ts';
import { openLoad } from '../load.ts';
import { program, type ServerProcess, startServer } from '../processes.ts';
import { ratio, spreadOf } from '../rounds.ts';
import { verification } from '../verification.ts';

const connections = 64;
const million = 1_000_000;
const more = 500_000;
/** Few rounds, because each takes a minute. */
const rounds = 3;

/**
 * Measures memory at rest and after a million requests, both against bare Fastify, and its growth over half a million
 * more.
 */
export async function memory(): Promise<Finding[]> {
  await using load = openLoad();
  await using rankd = await openRankd();
  // Several keys, so that none reaches its verification limit.
  const requests = fill(rankd, small).map((secret) => verification(secret));
  const measured = async (started: Promise<ServerProcess>, { grows }: { grows: boolean }) => {
    await using server = await started;
    const { url, pid } = server;
    const after = async (amount: number) => {
      for (const request of requests) {
        await load.send({ url, connections, amount: amount / requests.length, requests: [request] }, { status: 200 });
      }
      return residentMiB(pid);
    };
    return { idle: residentMiB(pid), loaded: await after(million), later: grows ? await after(more) : Number.NaN };
  };
  type Memory = Awaited<ReturnType<typeof measured>>;
  const pairs: Array<{ ours: Memory; baseline: Memory }> = [];
  for (let round = 0; round < rounds; round += 1) {
    pairs.push({
      ours: await measured(rankd.start(), { grows: true }),
      baseline: await measured(startServer([program('baselines/fastify-verify.js')]), { grows: false }),
    });
  }
  const common = { against: 'bare Fastify', figure: 'resident', unit: '×', goal: { atMost: 1.5 } } as const;
  return [
    { ...common, what: 'memory at rest', ...ratio(pairs, ({ idle }) => idle) },
    { ...common, what: 'memory after a million requests', ...ratio(pairs, ({ loaded }) => loaded) },
    {
      ...common,
      what: 'memory after half a million more',
      against: 'after the million',
      goal: { atMost: 1.1 },
      ...spreadOf(pairs.map(({ ours }) => ours.later / ours.loaded)),
    },
  ];
}

function residentMiB(pid: number): number {
  return figuresOf(pid).residentMiB;
}
