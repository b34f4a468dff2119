import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { createLog } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config/load.ts';
import { startDaemon } from '../../src/daemon/daemon.ts';
import { OpenCloudPlatform } from '../../src/platforms/open-cloud.ts';
import type { Clock } from '../../src/ports/index.ts';
import { createKey } from '../../src/usecases/keys/keys.ts';
import { sampleRoles, startFakeOpenCloud } from '../../test/support/fake-open-cloud/index.ts';
import { FastClock } from '../../test/tools/fast-clock.ts';
import { place } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { spreadOf } from '../rounds.ts';

/** The speed of the accelerated clock: a one-minute window of Roblox's budget takes `60 / speed` seconds. */
const speed = 4;
const windows = 10;
/** Roblox's documented budget for each operation that a rank change uses. */
export const budget = { changes: 300, windowMs: 60_000 };
/** The keys' total demand, as a multiple of the budget. */
const demand = 3;
const keys = ['one', 'two', 'three'];
/** A fourth key requests a single change at regular intervals, each time at a different point of a window. */
const single = { key: 'four', everyMs: 19_300 };
const answersInMs = 100;
/** Enough members that none is changed again before reads show its previous change. */
export const members = { first: 20_000, count: 1_500 };

export async function limit(): Promise<Finding[]> {
  await using rankd = await openRankd();
  const { clock } = rankd;
  const beganAt = clock.monotonic();
  const countedFrom = beganAt + budget.windowMs; // skips the first window: caches are cold, and the budget is full
  const endsAt = countedFrom + windows * budget.windowMs;
  const every = async (ms: number, key: string) => {
    const exchanges: Array<Promise<Exchange>> = [];
    for (let at = clock.monotonic(); at < endsAt; at += ms) {
      await clock.sleep(Math.max(0, at - clock.monotonic()));
      exchanges.push(rankd.ask(key));
    }
    return Promise.all(exchanges);
  };
  const pauseMs = (keys.length * budget.windowMs) / (demand * budget.changes);
  const [singles = [], ...others] = await Promise.all([
    every(single.everyMs, single.key),
    ...keys.map((key) => every(pauseMs, key)),
  ]);
  const all = [...singles, ...others.flat()].filter((one) => one.endedAt >= countedFrom);
  const done = Array.from({ length: windows }, (_, index) => {
    const from = countedFrom + index * budget.windowMs;
    const isIn = ({ endedAt }: Exchange) => endedAt >= from && endedAt < from + budget.windowMs;
    return all.filter((one) => one.status === 200 && isIn(one)).length / budget.changes;
  });
  for (const one of all.filter(isUnjustifiedFailure))
    process.stderr.write(`although there was time: ${JSON.stringify(one)}\n`);
  const waitsMs = singles
    .filter(({ askedAt }) => askedAt >= countedFrom)
    .map(({ askedAt, endedAt, status }) => (status === 200 ? endedAt - askedAt : deadlineMs));
  const what = `POST /v1/ranker, ${keys.length} keys that ask for ${demand} times Roblox's budget`;
  return [
    {
      what,
      against: 'the budget',
      figure: `done in the worst of ${windows} windows`,
      unit: '×',
      goal: { atLeast: 0.97 },
      ...spreadOf([Math.min(...done)]),
    },
    {
      what: `${what}, and a fourth that asks for one change`,
      against: '',
      figure: 'longest wait of the fourth',
      unit: 'ms',
      goal: { atMost: 1_000 },
      ...spreadOf([Math.max(...waitsMs)]),
    },
    {
      what,
      against: '',
      figure: 'unknown, or refused although there was time',
      unit: 'changes',
      goal: { atMost: 0 },
      ...spreadOf([all.filter(isUnjustifiedFailure).length]),
    },
  ];
}

/** A request and its response. Times are from the accelerated clock. */
export interface Exchange {
  askedAt: number;
  endedAt: number;
  status: number;
  body: { code?: string; retryAfter?: number };
}

const deadlineMs = 20_000;
/** The longest that a change takes if it does not have to wait. */
const changeMs = 1_000;

/**
 * True if a request failed, unless rankd refused it because waiting and then making the change would have exceeded the
 * deadline.
 */
function isUnjustifiedFailure({ askedAt, endedAt, status, body: { code, retryAfter = 0 } }: Exchange): boolean {
  const leftMs = askedAt + deadlineMs - endedAt;
  return status !== 200 && !(code === 'platform_busy' && retryAfter * 1_000 + changeMs > leftMs);
}

/** Starts a daemon and a fake Roblox that enforces its budgets, both on the accelerated clock. */
async function openRankd() {
  await using opened = new AsyncDisposableStack();
  const clock = new FastClock(speed);
  const fake = await startFakeOpenCloud({ clock, latencyMs: answersInMs });
  opened.defer(() => fake.close());
  const dataDir = opened.adopt(mkdtempSync(join(tmpdir(), 'rankd-bench-')), (path) =>
    rmSync(path, { recursive: true }),
  );
  const flags = {
    'server.port': '0',
    'platform.kind': 'simulated',
    'policy.breaker.enabled': 'false',
    'limits.rank': '0',
  };
  const platform = new OpenCloudPlatform({ ...fake, clock });
  const daemon = await startDaemon({
    config: loadConfig({ flags, env: {}, cwd: dataDir }).config,
    dataDir,
    log: createLog({ level: 'silent', readable: false, write: () => undefined }),
    overrides: { platform, clock },
  });
  opened.defer(() => daemon.stop());
  const { store } = daemon.app.current;
  const secrets = new Map<string, string>();
  for (const name of [...keys, single.key]) {
    const request = { name, mode: 'live', scopes: ['verify', 'rank'], place: { id: place }, by: 'bench' } as const;
    secrets.set(name, (await createKey({ store, clock }, { ...request, scopes: [...request.scopes] })).secret);
  }
  const agent = opened.adopt(new http.Agent({ keepAlive: true }), (one) => one.destroy());
  let requestCount = 0;
  const closers = opened.move();
  return {
    clock,
    async ask(key: string): Promise<Exchange> {
      const rankeeId = members.first + (requestCount % members.count);
      requestCount += 1;
      fake.group.setMember(rankeeId, [sampleRoles.trainee]);
      return ask({ agent, url: daemon.url, secret: secrets.get(key) ?? '', rankeeId, clock });
    },
    [Symbol.asyncDispose]: () => closers.disposeAsync(),
  };
}

interface Request {
  agent: http.Agent;
  url: string;
  secret: string;
  rankeeId: number;
  clock: Clock;
}

export async function ask({ agent, url, secret, rankeeId, clock }: Request): Promise<Exchange> {
  const askedAt = clock.monotonic();
  const { status, body } = await send(agent, `${url}/v1/ranker?placeid=${place}`, {
    key: secret,
    body: { rankerName: 'Bench', rankerId: 0, rankeeName: 'Member', rankeeId, newRankId: 20 },
  });
  return { askedAt, endedAt: clock.monotonic(), status, body };
}

async function send(agent: http.Agent, url: string, { key, body }: { key: string; body: unknown }) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  http.request(url, { agent, method: 'POST', headers }, resolve).on('error', reject).end(JSON.stringify(body));
  const answer = await promise;
  return { status: answer.statusCode ?? 0, body: (await json(answer)) as Exchange['body'] };
}
