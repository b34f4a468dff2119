import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { DaemonProcess } from '../support/daemon-process.ts';
import type { JournalEntry } from '../support/fake-open-cloud/index.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { CliHome } from '../support/run-cli.ts';
import { type Bench, openBench } from './bench.ts';
import { Callers } from './callers.ts';
import { type Anomalies, type CrashReport, compareRecords, shareRounds } from './crash-run.ts';
import { loadConfigFor } from './fake-config.ts';
import { SeededRandom } from './random.ts';
import { type StoreProxy, startStoreProxy } from './store-proxy.ts';

export interface ChaosOptions {
  rounds: number;
  /**
   * The number of groups that run the rounds in parallel, which saves time because a round consists mostly of waiting.
   * Each group has its own PostgreSQL server and daemons.
   */
  sideBySide: number;
  nodes: number;
  /** The number of faults in a round. */
  faultCount: number;
  /** The longest duration of a fault that neither lasts for the rest of the round nor suspends all nodes but one. */
  maxFaultMs: number;
  /** Roblox's longest response time in half of the rounds. In these, faults occur while writes are in flight. */
  maxAnswerMs: number;
  seed: number;
  print: (line: string) => void;
}

/** `lateWrites`: the number of late writes in the audit log. A node that is suspended during a write can make one. */
export interface ChaosReport extends CrashReport {
  lateWrites: number;
}

const memberCount = 24;
const callerCount = 8;
const reconciledWithinMs = 60_000;
const answerWithinMs = 12_000;

/** Injects faults into PostgreSQL and the daemons that share it, while callers send requests to random daemons. */
export async function runChaos({ rounds, sideBySide, seed, ...options }: ChaosOptions): Promise<ChaosReport> {
  return shareRounds({ rounds, sideBySide, seed }, (share) => chaosIn({ ...options, ...share }));
}

async function chaosIn({ rounds, seed, print, ...options }: Omit<ChaosOptions, 'sideBySide'>): Promise<ChaosReport> {
  await using world = await openWorld(options, seed);
  const { bench, random, callers } = world;
  const report = { rounds: 0, kills: 0, changes: 0, acknowledged: 0, lateWrites: 0 };
  const wrong = { lost: 0, doubled: 0, stray: 0, differing: 0, unreconciled: 0, violations: 0 };
  for (; report.rounds < rounds; report.rounds += 1) {
    bench.fake.latencyMs = random.between(1, random.next() < 0.5 ? 25 : options.maxAnswerMs);
    const stop = new AbortController();
    const [shared = 0] = bench.members;
    const working = Array.from({ length: callerCount }, (_, index) =>
      callers.run(
        { anyUrl: world.anyUrl, answerWithinMs },
        { members: index < 3 ? [shared] : bench.members, stop: stop.signal },
      ),
    );
    const occurred: string[] = [];
    for (let count = 0; count < options.faultCount; count += 1) {
      await delay(random.between(200, 1_500));
      occurred.push(await random.pick(faultInjectors)(world, random.between(500, options.maxFaultMs)));
      report.kills += 1;
    }
    await world.endFaults();
    const servedBefore = callers.acknowledged;
    for (let waited = 0; callers.acknowledged < servedBefore + callerCount && waited < reconciledWithinMs; waited += 50)
      await delay(50);
    stop.abort();
    await Promise.all(working);
    const faultsEndedAt = performance.now();
    await world.untilNothingInFlight();
    await bench.openAfter(reconciledWithinMs);
    const reconciledInMs = performance.now() - faultsEndedAt;
    const lateWritesAndReverts = await world.lateWritesAndReverts();
    const { changes, sentences, ...found } = await compareRecords(bench, callers, lateWritesAndReverts);
    Object.assign(report, {
      changes,
      acknowledged: callers.acknowledged,
      lateWrites: lateWritesAndReverts.lateMembers.length,
    });
    Object.assign(wrong, found);
    for (const sentence of sentences.slice(0, 20)) print(`  ${sentence}`);
    print(
      `seed ${seed}, round ${report.rounds + 1}: ${occurred.join(', ')}; ${changes} changes, ${report.acknowledged} acknowledged, reconciled in ${(reconciledInMs / 1000).toFixed(1)} s`,
    );
    if (sentences.length === 0) continue;
    print(`  all records are in ${await world.writeRecords(seed)}`);
    break; // after an inconsistency, later results prove nothing
  }
  return { ...report, ...wrong };
}

interface Node {
  home: CliHome;
  proxy: StoreProxy;
  daemon: DaemonProcess | undefined;
  /** The logs of the node's previous daemons. */
  logs: string[];
}

/** Injects a fault and resolves with its description. `endFaults` ends remaining faults at the end of the round. */
type FaultInjector = (world: World, ms: number) => Promise<string>;

const faultInjectors: readonly FaultInjector[] = [
  async (world) => {
    const node = world.anyNode();
    await node.daemon?.stop('SIGKILL');
    await world.start(node);
    return 'a node killed';
  },
  async (world) => {
    await world.anyNode().daemon?.stop('SIGKILL');
    return 'a node killed, for the rest of the round';
  },
  async (world, ms) => {
    const { daemon } = world.anyNode();
    daemon?.process.kill('SIGSTOP');
    await delay(ms);
    daemon?.process.kill('SIGCONT');
    return `a node suspended for ${ms} ms`;
  },
  async (world, ms) => {
    const { daemon } = world.anyNode();
    daemon?.process.kill('SIGSTOP');
    setTimeout(() => daemon?.process.kill('SIGCONT'), ms);
    return `a node suspended for ${ms} ms, during the next fault`;
  },
  async (world, ms) => {
    const spared = world.anyNode();
    const others = world.nodes.filter((node) => node !== spared);
    // long enough for the running node to take over and complete the others' changes
    const longMs = world.maxFaultMs + Math.ceil(0.6 * ms);
    await world.writeInFlight();
    for (const { daemon } of others) daemon?.process.kill('SIGSTOP');
    await delay(longMs);
    for (const { daemon } of others) daemon?.process.kill('SIGCONT');
    return `all nodes but one suspended during a write for ${longMs} ms`;
  },
  async (world) => {
    await world.server.restart('SIGKILL');
    return 'PostgreSQL killed';
  },
  async (world) => {
    await world.server.restart('SIGINT');
    return 'PostgreSQL restarted';
  },
  async (world, ms) => {
    for (const { proxy } of world.nodes) proxy.mode = 'hold';
    await delay(ms);
    for (const { proxy } of world.nodes) proxy.mode = 'pass';
    return `PostgreSQL silent for ${ms} ms`;
  },
  async (world, ms) => {
    const { proxy } = world.anyNode();
    proxy.mode = 'hold';
    await delay(ms);
    proxy.cut();
    proxy.mode = 'pass';
    return `a node cut off from PostgreSQL for ${ms} ms`;
  },
  async (world, ms) => {
    const { proxy } = world.anyNode();
    proxy.mode = Math.min(ms / 10, 400);
    return `PostgreSQL ${proxy.mode} ms away from a node`;
  },
];

/** Selects the nodes that have requests in flight, or that have sent no heartbeat since $1. */
const busyNodes = `
  SELECT id FROM rankd.nodes
  WHERE ended_by IS NULL AND name IS NOT NULL AND (beaten_at <= $1 OR (status::jsonb ->> 'requestsInFlight')::int > 0)`;

interface AuditedChange {
  subject: string;
  detail: { rankeeId?: number; rolesAfter?: number[] };
}

interface World extends AsyncDisposable {
  bench: Bench;
  random: SeededRandom;
  callers: Callers;
  server: PostgresServer;
  nodes: Node[];
  maxFaultMs: number;
  /** Resolves as soon as Roblox is handling a write, or after two seconds without one. */
  writeInFlight(): Promise<void>;
  anyNode(): Node;
  /** Returns a random node's URL, even if the node does not respond, as a load balancer without health checks would. */
  anyUrl(): string;
  start(node: Node): Promise<void>;
  endFaults(): Promise<void>;
  /**
   * Waits up to a minute until no daemon has a request in flight, because even a request that its caller has abandoned
   * can begin a change.
   */
  untilNothingInFlight(): Promise<void>;
  lateWritesAndReverts(): Promise<Anomalies>;
  /**
   * Writes the history, the audit log, the fake's writes, the responses and the logs to a file, and returns its path.
   */
  writeRecords(seed: number): Promise<string>;
}

async function openWorld(
  { nodes: nodeCount, maxFaultMs }: Pick<ChaosOptions, 'nodes' | 'maxFaultMs'>,
  seed: number,
): Promise<World> {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await startPostgres());
  const urlBy = (port: number) => `postgres://${server.user}@127.0.0.1:${port}/postgres`;
  const endless = 1_000_000;
  const limits = { group: endless, roles: endless, memberships: endless, assign: endless, unassign: endless };
  const storeAt = (port: number) => `store:\n  url: ${urlBy(port)}\n`;
  const bench = opened.use(await openBench({ memberCount, limits, settings: storeAt(server.port) }));
  const random = new SeededRandom(seed);
  const nodes: Node[] = [];
  for (let index = 0; index < nodeCount; index += 1) {
    const home = opened.use(new CliHome());
    const proxy = opened.use(await startStoreProxy(server.port));
    writeFileSync(home.path('rankd.yaml'), loadConfigFor(bench.fake) + storeAt(proxy.port), { mode: 0o600 });
    nodes.push({ home, proxy, daemon: undefined, logs: [] });
  }
  const start = async (node: Node) => {
    if (node.daemon !== undefined) node.logs.push(node.daemon.log);
    const env = { RANKD_PLATFORM_API_KEY: bench.fake.apiKey };
    const giveUpAt = performance.now() + 30_000;
    for (;;) {
      try {
        node.daemon = await DaemonProcess.start(node.home, { env });
        return;
      } catch (error) {
        if (performance.now() > giveUpAt) throw error;
        await delay(250); // PostgreSQL may still be restarting
      }
    }
  };
  opened.defer(async () => {
    for (const { daemon } of nodes) await daemon?.stop('SIGKILL');
  });
  await Promise.all(nodes.map(start));
  const anyNode = () => random.pick(nodes);
  const callers = new Callers(bench, random);
  const eventsOf = async (action: string) => {
    const found = await bench.home.json<{ events: AuditedChange[] }>(
      ...['audit', 'list', '--limit', '100000', '--action', action],
    );
    return found.events;
  };
  const running = opened.move();
  return {
    ...{ maxFaultMs, bench, random, callers, server, nodes, anyNode, start },
    anyUrl: () => random.pick(nodes.flatMap(({ daemon }) => daemon?.url ?? [])),
    async writeInFlight() {
      const isOpen = ({ operation, endedAt }: JournalEntry) =>
        (operation === 'assign' || operation === 'unassign') && endedAt === undefined;
      for (let waits = 0; waits < 1_000 && !bench.fake.journal.entries.slice(-40).some(isOpen); waits += 1)
        await delay(2);
    },
    async endFaults() {
      for (const node of nodes) {
        node.proxy.mode = 'pass';
        const { process } = node.daemon ?? {};
        process?.kill('SIGCONT');
        if (process?.exitCode !== null || process.signalCode !== null) await start(node);
      }
    },
    async untilNothingInFlight() {
      const client = new pg.Client({
        host: server.socketDir,
        port: server.port,
        user: server.user,
        database: 'postgres',
      });
      await client.connect();
      const since = Date.now();
      for (let busy = 1; busy > 0 && Date.now() < since + reconciledWithinMs; await delay(200))
        busy = (await client.query<{ id: string }>(busyNodes, [since])).rows.length;
      await client.end();
    },
    async lateWritesAndReverts() {
      const [late, putBack] = await Promise.all([eventsOf('rank.late_write'), eventsOf('rank.compensate')]);
      return {
        lateMembers: late.map(({ detail }) => Number(detail.rankeeId)),
        intendedRoles: new Map(putBack.map(({ subject, detail }) => [subject, detail.rolesAfter ?? []])),
      };
    },
    async writeRecords(seed) {
      const file = join(tmpdir(), `rankd-chaos-${seed}-${process.pid}.json`);
      const { journal } = bench.fake;
      const { events } = await bench.home.json<{ events: unknown[] }>('audit', 'list', '--limit', '100000');
      const writes = bench.members.flatMap((userId) => journal.writes(userId));
      const logs = nodes.map(({ logs, daemon }) => [...logs, daemon?.log]);
      const records = { history: await bench.history(), writes, answered: callers.answered, events, logs };
      writeFileSync(file, JSON.stringify(records, undefined, 1));
      return file;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
