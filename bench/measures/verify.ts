import { mintKey } from '../../src/core/api-key.ts';
import { openRankd, place } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { type LoadReport, type LoadRequest, openLoad } from '../load.ts';
import { cpuMs, program, type ServerProcess, startServer } from '../processes.ts';
import { interleaved, overStarts, ratio } from '../rounds.ts';
import { verification } from '../verification.ts';

/**
 * The load of one turn, which takes about a third of a second. Each turn opens new connections. Each of these sends 256
 * requests, so that opening it matters little.
 */
export const slice = { connections: 64, amount: 16_384 };

const what = 'POST /v1/apikey';
const throughput = ({ requestsPerSecond }: LoadReport) => requestsPerSecond;

/**
 * Measures accepted and refused verifications against bare Fastify, and accepted ones also against bare `node:http`.
 */
export async function verify({ rounds }: { rounds: number }): Promise<Finding[]> {
  const measured = await overStarts(rounds, measureOnce);
  const accepted = measured.flatMap((once) => once.accepted);
  const common = { unit: '×', figure: 'req/s', against: 'bare Fastify', goal: { atLeast: 0.9 } } as const;
  const refused = (why: 'wrongKey' | 'wrongPlace') =>
    ratio(
      measured.flatMap((once) => once[why]),
      throughput,
    );
  return [
    { ...common, what: `${what}, good key`, ...ratio(accepted, throughput) },
    { ...common, what: `${what}, good key`, figure: 'p99', goal: { atMost: 1.3 }, ...ratio(accepted, (r) => r.p99Ms) },
    {
      what: `${what}, good key`,
      against: 'bare Fastify',
      figure: 'CPU of the server for one request',
      unit: '×',
      ...ratio(accepted, ({ cpuMsEach }) => cpuMsEach),
    },
    { ...common, what: `${what}, wrong key`, ...refused('wrongKey') },
    { ...common, what: `${what}, place not whitelisted`, ...refused('wrongPlace') },
    {
      what: `${what}, good key`,
      against: 'bare node:http',
      figure: 'req/s',
      unit: '×',
      ...ratio(
        measured.flatMap((once) => once.bare),
        throughput,
      ),
    },
  ];
}

async function measureOnce(rounds: number) {
  await using load = openLoad();
  await using rankd = await openRankd();
  await using ours = await rankd.start();
  await using fastify = await startServer([program('baselines/fastify-verify.js')]);
  await using node = await startServer([program('baselines/node-http.ts')]);
  const good = verification(rankd.secret);
  const run = async ({ url, pid }: ServerProcess, request: LoadRequest, status = 200) => {
    const cpuBeforeMs = cpuMs(pid);
    const report = await load.send({ url, ...slice, requests: [request] }, { status });
    return { ...report, cpuMsEach: (cpuMs(pid) - cpuBeforeMs) / slice.amount };
  };
  const against = (base: ServerProcess, request: LoadRequest, status: number) =>
    interleaved({ ours: () => run(ours, request, status), baseline: () => run(base, request) }, rounds);
  return {
    accepted: await against(fastify, good, 200),
    wrongKey: await against(fastify, verification(mintKey('live').secret), 401),
    wrongPlace: await against(fastify, verification(rankd.secret, place + 1), 403),
    bare: await against(node, good, 200),
  };
}
