import { writeFileSync } from 'node:fs';
import pg from 'pg';
import { systemClock } from '../../src/base/clock.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { recordOutcome } from '../../src/usecases/change/change-record.ts';
import { applied, begin, newChange } from '../../test/contracts/store/samples.ts';
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts';
import { binary } from '../../test/support/run-cli.ts';
import { runRevocations } from '../../test/tools/revocation-run.ts';
import { type StoreProxy, startStoreProxy } from '../../test/tools/store-proxy.ts';
import { openRankd, type Rankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { type Load, type LoadRequest, openLoad } from '../load.ts';
import { cpuMs, program, type ServerProcess, startServer } from '../processes.ts';
import { interleaved, overStarts, ratio, spreadOf } from '../rounds.ts';
import { verification } from '../verification.ts';
import { firstStarts, runMs } from './commands.ts';
import { openSides } from './ranker.ts';
import { slice } from './verify.ts';

const verifying = 'POST /v1/apikey on PostgreSQL';

/**
 * Measures daemons on PostgreSQL against the same build on SQLite, against bare Fastify, and against bare statements on
 * the same server.
 */
export async function postgres({ rounds }: { rounds: number }): Promise<Finding[]> {
  await using server = await startPostgres({ settings: ['fsync=on', 'full_page_writes=on'] });
  return [
    ...(await verifications(server, rounds)),
    await changes(server, rounds, { database: 'changes', diskMs: 0 }),
    await changes(server, rounds, { database: 'changes_on_a_disk', diskMs: 1 }),
    ...(await measureTrips(server, rounds)),
    ...(await commandLine(server, rounds)),
    await revocations(server),
  ];
}

/** Creates a database. The returned URL and configuration use `port`. */
export async function newStore(
  server: PostgresServer,
  name: string,
  { port = server.port, settings = {} }: { port?: number; settings?: Record<string, number> } = {},
): Promise<{ url: string; config: string }> {
  const client = clientOf(server, 'postgres');
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  for (const [setting, value] of Object.entries(settings))
    await client.query(`ALTER DATABASE ${name} SET ${setting} = ${value}`);
  await client.end();
  const url = `postgres://${server.user}@127.0.0.1:${port}/${name}`;
  return { url, config: `platform:\n  kind: simulated\nstore:\n  url: ${url}\n` };
}

function clientOf({ port, user }: Pick<PostgresServer, 'port' | 'user'>, database: string): pg.Client {
  return new pg.Client({ host: '127.0.0.1', port, user, database });
}

async function verifications(server: PostgresServer, rounds: number): Promise<Finding[]> {
  const measured = await overStarts(rounds, (share, start) => verifyOnce(server, share, `verify_${start}`));
  const resultsOf = (kind: 'againstSqlite' | 'againstFastify' | 'together') => measured.flatMap((once) => once[kind]);
  const trips = measured.flatMap(({ single }) =>
    single.map(({ ours, baseline }) => (ours.p50Ms - baseline.p50Ms) / ours.tripMs),
  );
  const cpu = { figure: 'CPU of the server for one request', unit: '×' } as const;
  return [
    {
      ...{ what: verifying, against: 'on SQLite', figure: 'req/s', unit: '×', goal: { atLeast: 0.85 } },
      ...ratio(resultsOf('againstSqlite'), ({ requestsPerSecond }) => requestsPerSecond),
    },
    {
      ...{ what: verifying, against: 'on SQLite', ...cpu, goal: { atMost: 1 / 0.85 } },
      ...ratio(resultsOf('againstSqlite'), ({ cpuMsEach }) => cpuMsEach),
    },
    {
      ...{ what: verifying, against: 'bare Fastify', ...cpu, goal: { atMost: 1 / 0.7 } },
      ...ratio(resultsOf('againstFastify'), ({ cpuMsEach }) => cpuMsEach),
    },
    {
      ...{ what: `${verifying}, three daemons`, against: 'one', ...cpu, goal: { atMost: 1.1 } },
      ...ratio(resultsOf('together'), ({ cpuMsEach }) => cpuMsEach),
    },
    {
      ...{ what: `${verifying}, one caller`, against: 'bare Fastify', figure: 'added p50, in trips to the server' },
      ...{ unit: '×', goal: { atMost: 2 }, ...spreadOf(trips) },
    },
  ];
}

async function verifyOnce(server: PostgresServer, rounds: number, database: string) {
  await using opened = new AsyncDisposableStack();
  const load = opened.use(openLoad());
  const { config } = await newStore(server, database);
  const shared = opened.use(await openRankd(config));
  const onSqlite = opened.use(await openRankd());
  const nodes: ServerProcess[] = [];
  for (let index = 0; index < 3; index += 1) {
    nodes.push(opened.use(await shared.start({ RANKD_DATA_DIR: `${shared.home.dataDir}-${index}` })));
  }
  const [node] = nodes as [ServerProcess];
  const sqlite = opened.use(await onSqlite.start());
  const fastify = opened.use(await startServer([program('baselines/fastify-verify.js')]));
  const many =
    (one: ServerProcess, { secret }: Rankd) =>
    () =>
      loaded(load, [one], verification(secret));
  const onNode = many(node, shared);
  const againstSqlite = await interleaved({ ours: onNode, baseline: many(sqlite, onSqlite) }, rounds);
  const againstFastify = await interleaved({ ours: onNode, baseline: many(fastify, shared) }, rounds);
  // The baseline also takes three turns, each with new connections. Each daemon gets only a third of the requests, and
  // therefore needs more warm-up rounds.
  const inTurn = (servers: ServerProcess[]) => () => loaded(load, servers, verification(shared.secret));
  const sides = { ours: inTurn(nodes), baseline: inTurn(nodes.map(() => node)) };
  const together = await interleaved(sides, rounds, 4 * nodes.length);

  const client = clientOf(server, database);
  await client.connect();
  opened.defer(() => client.end());
  const trip = async () => p50Of(200, () => client.query({ name: 'one', text: 'SELECT 1 FROM rankd.access_version' }));
  const alone = (one: ServerProcess) => async () => {
    const [request, status] = [verification(shared.secret), 200];
    const { p50Ms } = await load.send({ url: one.url, connections: 1, amount: 400, requests: [request] }, { status });
    return { p50Ms, tripMs: await trip() };
  };
  const single = await interleaved({ ours: alone(node), baseline: alone(fastify) }, rounds);
  return { againstSqlite, againstFastify, together, single };
}

/**
 * Divides the requests of one `slice` among the servers, and loads one server after another. A server can be listed
 * several times.
 */
async function loaded(load: Load, servers: readonly ServerProcess[], request: LoadRequest) {
  const pids = [...new Set(servers.map(({ pid }) => pid))];
  const cpu = () => pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
  const share = { connections: slice.connections, amount: Math.floor(slice.amount / servers.length) };
  const before = cpu();
  let requestsPerSecond = 0;
  for (const { url } of servers) {
    const report = await load.send({ url, ...share, requests: [request] }, { status: 200 });
    requestsPerSecond += report.requestsPerSecond / servers.length;
  }
  return { requestsPerSecond, cpuMsEach: (cpu() - before) / (share.amount * servers.length) };
}

/**
 * Measures the store's part of a rank change against two single-row commits on the same server, which delays each
 * commit by `diskMs`.
 */
async function changes(
  server: PostgresServer,
  rounds: number,
  { database, diskMs }: { database: string; diskMs: number },
): Promise<Finding> {
  await using opened = new AsyncDisposableStack();
  await newStore(server, database, { settings: { commit_delay: diskMs * 1_000, commit_siblings: 0 } });
  const ours = opened.use(await beginAndFinish(server, { database, port: server.port }));
  const client = clientOf(server, database);
  await client.connect();
  opened.defer(() => client.end());
  await client.query('CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text)');
  const commit = () =>
    client.query({ name: 'commit', text: 'INSERT INTO bare (note) VALUES (repeat($1, 300))', values: ['x'] });
  const baseline = () => p50Of(50, () => commit().then(commit));
  const pairs = await interleaved({ ours: () => p50Of(50, ours.once), baseline }, rounds, 10);
  const disk = diskMs === 0 ? '' : `, each ${diskMs} ms longer`;
  return {
    ...{ what: 'a rank change on PostgreSQL, begin and finish', against: `two bare commits of the same server${disk}` },
    ...{ figure: 'p50', unit: '×', goal: { atMost: 4 }, ...ratio(pairs, (ms) => ms) },
  };
}

async function beginAndFinish({ user, socketDir }: PostgresServer, at: { database: string; port: number }) {
  const server = { host: '127.0.0.1', user, ...at, tls: false } as const;
  const store = await engineOf({ dataDir: socketDir, clock: systemClock, server }).openStore();
  let rankeeId = 1_000;
  return {
    async once() {
      rankeeId += 1;
      const change = newChange({ rankeeId, requestedAt: Date.now() });
      await begin(store, change);
      await recordOutcome({ store, clock: systemClock }, change.id, applied);
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/** The network's delay in each direction while the trips that a caller waits for are counted; other work takes less. */
const lateMs = 25;
/** The number of changes in one measurement. */
const few = 5;

/**
 * Counts a rank change's round trips to the server. The proxy counts all of them. The number that the caller waits for
 * is a change's extra time on a delayed network, divided by a single trip's extra time.
 */
async function measureTrips(server: PostgresServer, rounds: number): Promise<Finding[]> {
  await using opened = new AsyncDisposableStack();
  const network = opened.use(await startStoreProxy(server.port));
  const database = 'trips';
  await newStore(server, database);
  const begun = opened.use(await beginAndFinish(server, { database, port: network.port }));
  const client = clientOf({ user: server.user, port: network.port }, database);
  await client.connect();
  opened.defer(() => client.end());
  const load = opened.use(openLoad());
  // A second database, because a daemon that finds changes from the last minute treats Roblox's budget as spent.
  const { url } = await newStore(server, 'whole_changes', { port: network.port });
  const sides = opened.use(await openSides({ load, latencyMs: 0, config: `store:\n  url: ${url}\n` }));
  const whole = () => sides.ours({ connections: 1, amount: few });
  const measure = async (mode: StoreProxy['mode']) => {
    network.mode = mode;
    const tripMs = await p50Of(few, () => client.query({ name: 'one', text: 'SELECT 1 FROM rankd.access_version' }));
    const storeMs = await p50Of(few, begun.once);
    const before = network.trips;
    const { p50Ms } = await whole();
    return { tripMs, storeMs, wholeMs: p50Ms, all: (network.trips - before) / few };
  };
  const pairs = await interleaved({ ours: () => measure(lateMs), baseline: () => measure('pass') }, rounds, 5);
  const waitedFor = pairs.map(({ ours, baseline }) => {
    const waits = (figure: 'storeMs' | 'wholeMs') =>
      (ours[figure] - baseline[figure]) / (ours.tripMs - baseline.tripMs);
    return { store: waits('storeMs'), whole: waits('wholeMs') };
  });
  const common = { unit: 'trips', against: '' } as const;
  const what = 'POST /v1/ranker on PostgreSQL, one caller';
  return [
    {
      ...{ ...common, what: 'a rank change on PostgreSQL, begin and finish', figure: 'trips to the server' },
      ...spreadOf(waitedFor.map(({ store }) => store)),
    },
    {
      ...{ ...common, what, against: 'begin and finish', figure: 'added trips that the caller waits for' },
      ...{ goal: { atMost: 6 }, ...spreadOf(waitedFor.map(({ store, whole }) => whole - store)) },
    },
    {
      ...{ ...common, what, figure: 'all trips to the server' },
      ...{ goal: { atMost: 15 }, ...spreadOf(pairs.map(({ baseline }) => baseline.all)) },
    },
  ];
}

async function commandLine(server: PostgresServer, rounds: number): Promise<Finding[]> {
  const { config } = await newStore(server, 'commands');
  await using rankd = await openRankd(config);
  writeFileSync(rankd.home.path('rankd.yaml'), config); // overwrites the file, to remove the bench's limits
  const ours = async () => runMs(rankd.home, [binary, 'key', 'list']);
  const pairs = await interleaved({ ours, baseline: async () => runMs(rankd.home, ['-e', '0']) }, rounds, firstStarts);
  return [
    {
      ...{ what: 'rankd key list on PostgreSQL', against: 'node -e 0', figure: 'time', unit: '×', goal: { atMost: 3 } },
      ...ratio(pairs, (ms) => ms),
    },
  ];
}

async function revocations(server: PostgresServer): Promise<Finding> {
  const { url } = await newStore(server, 'revocations');
  const { accepted } = await runRevocations({ daemons: 3, env: { RANKD_STORE_URL: url }, wanted: 10_000 });
  return {
    ...{ what: `${verifying}, 10 000 at three daemons after \`key revoke\` returned`, against: '', figure: 'accepted' },
    ...{ unit: 'requests', goal: { atMost: 0 }, ...spreadOf([accepted]) },
  };
}

async function p50Of(count: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  return spreadOf(times).median;
}
