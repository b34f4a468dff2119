import { readFileSync } from 'node:fs';
import { figuresOf } from '../../test/tools/process-figures.ts';
import { openRankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { load } from '../load.ts';
import { program, type ServerProcess, startServer } from '../processes.ts';
import { verification } from '../verification.ts';

const connections = 64;
const million = 1_000_000;
/** With that, the limit of verifications a minute is not met. */
const more = 500_000;

/** Memory at rest and after a million requests, against bare Fastify; and whether it still grows with half a million more. */
export async function memory(): Promise<Finding[]> {
  await using rankd = await openRankd();
  const request = verification(rankd.secret);
  const after = async (amount: number, { url, pid }: ServerProcess) => {
    await load({ url, connections, amount, requests: [request] }, { status: 200 });
    return residentMiB(pid);
  };
  await using fastify = await startServer([program('baselines/fastify-verify.js')]);
  const bare = { idle: residentMiB(fastify.pid), loaded: await after(million, fastify) };
  const measured = async (env: Record<string, string>) => {
    await using ours = await rankd.start(env);
    return { idle: residentMiB(ours.pid), loaded: await after(million, ours), later: await after(more, ours) };
  };
  const plain = await measured({});
  const service = await measured(unitEnvironment());
  const what = 'memory after a million requests';
  const common = { against: 'bare Fastify', figure: 'resident', unit: '×' } as const;
  return [
    { ...common, what: 'memory at rest', goal: { atMost: 1.5 }, ...once(plain.idle / bare.idle) },
    {
      ...common,
      what: 'memory after half a million more',
      against: 'after the million',
      goal: { atMost: 1.1 },
      ...once(plain.later / plain.loaded),
    },
    { ...common, what, ...once(plain.loaded / bare.loaded) },
    { ...common, what: `${what}, as a service`, goal: { atMost: 1.5 }, ...once(service.loaded / bare.loaded) },
  ];
}

export function once(figure: number): Pick<Finding, 'median' | 'lowest' | 'highest'> {
  return { median: figure, lowest: figure, highest: figure };
}

/** What the systemd unit puts into the daemon's environment. */
function unitEnvironment(): Record<string, string> {
  const unit = readFileSync(new URL('../../config/rankd.service', import.meta.url), 'utf8');
  return Object.fromEntries([...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
}

function residentMiB(pid: number): number {
  return figuresOf(pid).residentMiB;
}
