import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { createLog } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config/load.ts';
import { startDaemon } from '../../src/daemon/daemon.ts';
import { createKey } from '../../src/usecases/keys/keys.ts';
import { DaemonProcess } from '../../test/support/daemon-process.ts';
import { sampleRoles, startFakeOpenCloud } from '../../test/support/fake-open-cloud/index.ts';
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts';
import { CliHome } from '../../test/support/run-cli.ts';
import { place as benchPlace, openBench } from '../../test/tools/bench.ts';
import { loadConfigFor } from '../../test/tools/fake-config.ts';
import { FastClock } from '../../test/tools/fast-clock.ts';
import { place } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { spreadOf } from '../rounds.ts';
import { ask, budget, type Exchange, members } from './limit.ts';
import { newStore } from './postgres.ts';

/**
 * Measures daemons that share a PostgreSQL server: one of two is killed during a change, and three share Roblox's
 * budget.
 */
export async function nodes(): Promise<Finding[]> {
  await using server = await startPostgres({ settings: ['fsync=on', 'full_page_writes=on'] });
  return [...(await kills(server)), ...(await sharedBudget(server))];
}

/** The number of daemons to kill. They are killed concurrently, because each run consists mostly of waiting. */
const killed = 3;
/** The fake's read lag. The longest lag observed on Roblox is 6.75 s. */
const lagMs = 5_000;

async function kills(server: PostgresServer): Promise<Finding[]> {
  const all = await Promise.all(Array.from({ length: killed }, (_, index) => killOne(server, `killed_${index}`)));
  const common = { what: 'a rank change whose daemon was killed', against: 'next to another daemon', unit: 'ms' };
  return [
    {
      ...{ ...common, unit: 'ms', figure: 'taken over after', goal: { atMost: 8_000 } },
      ...spreadOf(all.map(({ takenMs }) => takenMs)),
    },
    {
      ...{ ...common, unit: 'ms', figure: 'reconciled after', goal: { atMost: 20_000 } },
      ...spreadOf(all.map(({ reconciledMs }) => reconciledMs)),
    },
  ];
}

/** Kills a daemon while a change's write to Roblox is in flight. */
async function killOne(server: PostgresServer, database: string) {
  await using opened = new AsyncDisposableStack();
  const { url } = await newStore(server, database);
  const settings = `store:\n  url: ${url}\n`;
  const bench = opened.use(await openBench({ memberCount: 1, settings, latencyMs: 1_000, lagMs }));
  const otherHome = opened.use(new CliHome());
  writeFileSync(otherHome.path('rankd.yaml'), loadConfigFor(bench.fake) + settings, { mode: 0o600 });
  const first = opened.use(await bench.startDaemon());
  opened.use(await DaemonProcess.start(otherHome, { env: { RANKD_PLATFORM_API_KEY: bench.fake.apiKey } }));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  opened.defer(() => client.end());
  const until = async (condition: string) => {
    const giveUpAt = performance.now() + 60_000;
    for (;;) {
      const { rowCount } = await client.query(`SELECT 1 FROM rankd.rank_changes WHERE ${condition}`);
      if (rowCount === 1) return performance.now();
      if (performance.now() > giveUpAt) throw new Error(`no change with ${condition} within a minute`);
      await delay(20);
    }
  };
  const body = { rankerName: 'Bench', rankerId: 2, rankeeName: 'Member', rankeeId: bench.members[0], newRankId: 20 };
  const answered = fetch(`${first.url}/v1/ranker?placeid=${benchPlace}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bench.secret}` },
    body: JSON.stringify(body),
  }).catch(() => undefined);
  await until("state = 'pending'");
  await delay(100); // by now, the write is in flight
  await first.stop('SIGKILL');
  const killedAt = performance.now();
  await answered;
  const takenMs = (await until('takeovers > 0')) - killedAt;
  const reconciledMs = (await until("state NOT IN ('pending', 'unknown')")) - killedAt;
  return { takenMs, reconciledMs };
}

/**
 * The accelerated clock's speed. A higher one would overstate the cost of the budget ledger, whose queries take real
 * time.
 */
const speed = 6;
const windows = 10;
/**
 * Each daemon's demand and fair share, as fractions of the budget. A fair split gives no daemon more than its demand,
 * and divides the rest evenly.
 */
const demands = [
  { wanted: 0.2, share: 0.2 },
  { wanted: 0.8, share: 0.4 },
  { wanted: 1, share: 0.4 },
];

async function sharedBudget(server: PostgresServer): Promise<Finding[]> {
  await using daemons = await openDaemons(await newStore(server, 'budget'));
  const { clock } = daemons;
  const beganAt = clock.monotonic();
  const countedFrom = beganAt + budget.windowMs; // skips the first window: caches are cold, and the budget is full
  const endsAt = countedFrom + windows * budget.windowMs;
  const all = await Promise.all(
    demands.map(async ({ wanted }, index) => {
      const exchanges: Array<Promise<Exchange>> = [];
      const everyMs = budget.windowMs / (budget.changes * wanted);
      for (let at = beganAt; at < endsAt; at += everyMs) {
        await clock.sleep(Math.max(0, at - clock.monotonic()));
        exchanges.push(daemons.ask(index));
      }
      return Promise.all(exchanges);
    }),
  );
  const done = all.map((answers) =>
    answers.filter(({ status, endedAt }) => status === 200 && endedAt >= countedFrom && endedAt < endsAt),
  );
  const whole = budget.changes * windows;
  const furthest = Math.max(
    ...demands.map(({ share }, index) => Math.abs((done[index]?.length ?? 0) / (whole * share) - 1)),
  );
  const what = "POST /v1/ranker at three daemons, asked for 0.2, 0.8 and 1.0 of Roblox's budget";
  return [
    {
      ...{ what, against: 'the budget for reading members', figure: `used in ${windows} windows`, unit: '×' },
      ...{ goal: { atLeast: 0.97 }, ...spreadOf([daemons.readsBetween(countedFrom, endsAt) / whole]) },
    },
    {
      ...{ what, against: 'the budget', figure: `rank changes done in ${windows} windows`, unit: '×' },
      ...spreadOf([done.flat().length / whole]),
    },
    {
      ...{ what, against: 'fair shares: 0.2, 0.4 and 0.4', figure: 'the furthest from its share', unit: '×' },
      ...{ goal: { atMost: 0.1 }, ...spreadOf([furthest]) },
    },
    {
      ...{ what, against: '', figure: 'refused by Roblox', unit: 'requests', goal: { atMost: 0 } },
      ...spreadOf([daemons.refused()]),
    },
  ];
}

/** Starts daemons on one database, and a fake Roblox that enforces its budgets, all on the accelerated clock. */
async function openDaemons({ url }: { url: string }) {
  await using opened = new AsyncDisposableStack();
  const clock = new FastClock(speed);
  const fake = await startFakeOpenCloud({ clock, latencyMs: 100 });
  opened.defer(() => fake.close());
  const charge = fake.budgets.charge.bind(fake.budgets);
  let refused = 0;
  /** The times at which Roblox accepted reads of members, the most frequent operation. */
  const reads: number[] = [];
  fake.budgets.charge = (operation) => {
    try {
      const headers = charge(operation);
      if (operation === 'memberships') reads.push(clock.monotonic());
      return headers;
    } catch (error) {
      refused += 1;
      throw error;
    }
  };
  const flags = {
    ...{ 'server.port': '0', 'group.id': String(fake.groupId), 'policy.breaker.enabled': 'false', 'limits.rank': '0' },
    ...{ 'platform.base_url': fake.baseUrl, 'platform.legacy_base_url': fake.legacyBaseUrl },
    'platform.users_base_url': fake.usersBaseUrl,
  };
  const env = { RANKD_STORE_URL: url, RANKD_PLATFORM_API_KEY: fake.apiKey };
  const places: Array<{ url: string; secret: string }> = [];
  for (const index of demands.keys()) {
    const dataDir = opened.adopt(mkdtempSync(join(tmpdir(), 'rankd-bench-')), (path) =>
      rmSync(path, { recursive: true }),
    );
    const daemon = await startDaemon({
      config: loadConfig({ flags, env, cwd: dataDir }).config,
      dataDir,
      log: createLog({ level: 'silent', readable: false, write: () => undefined }),
      overrides: { clock },
    });
    opened.defer(() => daemon.stop());
    const { store } = daemon.app.current;
    const request = { name: `key-${index}`, mode: 'live', place: { id: place }, by: 'bench' } as const;
    const { secret } = await createKey({ store, clock }, { ...request, scopes: ['verify', 'rank'] });
    places.push({ url: daemon.url, secret });
  }
  const agent = opened.adopt(new http.Agent({ keepAlive: true }), (one) => one.destroy());
  let requestCount = 0;
  const closers = opened.move();
  return {
    clock,
    refused: () => refused,
    readsBetween: (from: number, to: number) => reads.filter((at) => at >= from && at < to).length,
    async ask(index: number): Promise<Exchange> {
      const rankeeId = members.first + (requestCount % members.count);
      requestCount += 1;
      fake.group.setMember(rankeeId, [sampleRoles.trainee]);
      const { url, secret } = places[index] as { url: string; secret: string };
      return ask({ agent, url, secret, rankeeId, clock });
    },
    [Symbol.asyncDispose]: () => closers.disposeAsync(),
  };
}
