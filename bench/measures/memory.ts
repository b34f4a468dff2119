import { figuresOf } from '../../test/tools/process-figures.ts';
import { openRankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { load } from '../load.ts';
import { program, type ServerProcess, startServer } from '../processes.ts';
import { verification } from '../verification.ts';

const connections = 64;
const halfMillion = 500_000;

/** Memory at rest and after a million requests, against bare Fastify; and whether it still grows in the second half million. */
export async function memory(): Promise<Finding[]> {
  await using rankd = await openRankd();
  await using ours = await rankd.start();
  await using fastify = await startServer([program('baselines/fastify-verify.js')]);
  const request = verification(rankd.secret);
  const afterHalfMillion = async ({ url, pid }: ServerProcess) => {
    await load({ url, connections, amount: halfMillion, requests: [request] }, { status: 200 });
    return residentMiB(pid);
  };
  const idle = residentMiB(ours.pid) / residentMiB(fastify.pid);
  const half = await afterHalfMillion(ours);
  const whole = await afterHalfMillion(ours);
  await afterHalfMillion(fastify);
  const bare = await afterHalfMillion(fastify);
  const against = 'bare Fastify';
  const unit = '×';
  return [
    { what: 'memory at rest', against, figure: 'resident', unit, goal: { atMost: 1.5 }, ...once(idle) },
    {
      what: 'memory after a million requests',
      against,
      figure: 'resident',
      unit,
      goal: { atMost: 1.5 },
      ...once(whole / bare),
    },
    {
      what: 'memory after a million requests',
      against: 'after half a million',
      figure: 'resident',
      unit,
      goal: { atMost: 1.1 },
      ...once(whole / half),
    },
  ];
}

export function once(figure: number): Pick<Finding, 'median' | 'lowest' | 'highest'> {
  return { median: figure, lowest: figure, highest: figure };
}

function residentMiB(pid: number): number {
  return figuresOf(pid).residentMiB;
}
