import { setTimeout as delay } from 'node:timers/promises';
import type { DaemonProcess } from '../support/daemon-process.ts';
import { type Bench, openBench } from './bench.ts';
import { Callers } from './callers.ts';
import { compare } from './compare.ts';
import { SeededRandom } from './random.ts';

export interface CrashOptions {
  rounds: number;
  /**
   * The number of groups that run the rounds in parallel, each with its own daemon. This saves time, because most of a
   * round is spent waiting until reads are certain to be current.
   */
  sideBySide: number;
  /** The number of kills before the remaining changes are reconciled and compared. */
  killsPerRound: number;
  seed: number;
  print: (line: string) => void;
}

/** A run's result. All but the first four figures must be 0. */
export interface CrashReport {
  rounds: number;
  kills: number;
  changes: number;
  acknowledged: number;
  lost: number;
  doubled: number;
  stray: number;
  differing: number;
  unreconciled: number;
  violations: number;
}

const memberCount = 24;
const callerCount = 12;
/** Includes the 8 s after which reads are certain to be current. */
const reconciledWithinMs = 20_000;

/** Kills daemons under load, and compares the reconciled changes with the fake's and the callers' records. */
export async function runCrashes({ rounds, sideBySide, seed, ...options }: CrashOptions): Promise<CrashReport> {
  return shareRounds({ rounds, sideBySide, seed }, (share) => crashOne({ ...options, ...share }));
}

/** Divides the rounds among parallel runs, and adds up their reports. */
export async function shareRounds<Report extends CrashReport>(
  { rounds, sideBySide, seed }: Pick<CrashOptions, 'rounds' | 'sideBySide' | 'seed'>,
  run: (share: { rounds: number; seed: number }) => Promise<Report>,
): Promise<Report> {
  const shares = Array.from({ length: sideBySide }, (_, index) => Math.floor((rounds + index) / sideBySide));
  const reports = await Promise.all(
    shares.flatMap((share, index) => (share === 0 ? [] : run({ rounds: share, seed: seed + index }))),
  );
  return reports.reduce(sumOf);
}

async function crashOne({
  rounds,
  killsPerRound,
  seed,
  print,
}: Omit<CrashOptions, 'sideBySide'>): Promise<CrashReport> {
  const endless = 1_000_000;
  const limits = { group: endless, roles: endless, memberships: endless, assign: endless, unassign: endless };
  await using bench = await openBench({ memberCount, limits });
  const random = new SeededRandom(seed);
  const callers = new Callers(bench, random);
  const report = { rounds: 0, kills: 0, changes: 0, acknowledged: 0 };
  const wrong = { lost: 0, doubled: 0, stray: 0, differing: 0, unreconciled: 0, violations: 0 };
  for (; report.rounds < rounds; report.rounds += 1) {
    bench.fake.latencyMs = random.between(1, 25);
    for (let kill = 0; kill < killsPerRound; kill += 1) {
      await killAtWork(bench, callers, { random, isLast: kill === killsPerRound - 1 });
      report.kills += 1;
    }
    await using _daemon = await bench.startDaemon();
    const restartedAt = performance.now();
    await bench.openAfter(reconciledWithinMs);
    const reconciledInMs = performance.now() - restartedAt;
    const { changes, sentences, ...found } = await compareRecords(bench, callers);
    Object.assign(report, { changes, acknowledged: callers.acknowledged });
    Object.assign(wrong, found);
    for (const sentence of sentences.slice(0, 20)) print(`  ${sentence}`);
    print(
      `seed ${seed}, round ${report.rounds + 1}: ${changes} changes, ${report.acknowledged} acknowledged, reconciled in ${(reconciledInMs / 1000).toFixed(1)} s`,
    );
    if (sentences.length > 0) break; // after a violation, later rounds prove nothing
  }
  return { ...report, ...wrong };
}

/**
 * Starts a daemon, and kills it under load. The last kill of a round waits up to 20 s for the run's first success,
 * because only an acknowledged change can be lost.
 */
async function killAtWork(
  bench: Bench,
  callers: Callers,
  { random, isLast }: { random: SeededRandom; isLast: boolean },
): Promise<void> {
  await using daemon: DaemonProcess = await bench.startDaemon();
  const [shared = 0] = bench.members;
  const working = Array.from({ length: callerCount }, (_, index) =>
    callers.run(daemon.url, { members: index < 3 ? [shared] : bench.members }),
  );
  await delay(random.between(50, 2_000));
  for (let waited = 0; isLast && callers.acknowledged === 0 && waited < 20_000; waited += 20) await delay(20);
  await daemon.stop('SIGKILL');
  await Promise.all(working);
}

/** Late writes and reverted changes, from the audit log. */
export interface Anomalies {
  /** The members with late writes. Their roles may differ from the history. */
  lateMembers: readonly number[];
  /** The roles that each reverted change was meant to give, keyed by change id. */
  intendedRoles: ReadonlyMap<string, number[]>;
}

/** Compares all records, except for the writes and roles of members with open changes or late writes. */
export async function compareRecords(bench: Bench, callers: Callers, anomalies?: Anomalies) {
  const { lateMembers = [], intendedRoles } = anomalies ?? {};
  const history = (await bench.history()).map((change) => ({ ...change, intended: intendedRoles?.get(change.id) }));
  const open = history.filter(({ state }) => state === 'pending' || state === 'unknown');
  const unreconciled = open.map(({ id, state, rankeeId }) => `${id} of member ${rankeeId} is still ${state}`);
  const excluded = new Set([...lateMembers, ...open.map(({ rankeeId }) => rankeeId)]);
  const initialRoles = new Map([...bench.initialRoles].filter(([userId]) => !excluded.has(userId)));
  const { lost, doubled, stray, differing } = compare({ ...bench, initialRoles, history, answered: callers.answered });
  const violations = bench.fake.violations();
  const halves = [...initialRoles.keys()].filter((userId) => bench.fake.group.held(userId)?.length !== 1);
  const halfDone = halves.map((userId) => `member ${userId} holds ${bench.fake.group.held(userId)}, not one role`);
  return {
    changes: history.length,
    lost: lost.length,
    doubled: doubled.length,
    stray: stray.length,
    differing: differing.length + halfDone.length,
    unreconciled: unreconciled.length,
    violations: violations.length,
    sentences: [...unreconciled, ...lost, ...doubled, ...stray, ...differing, ...halfDone, ...violations],
  };
}

function sumOf<Report extends CrashReport>(one: Report, other: Report): Report {
  const others = new Map(Object.entries(other));
  return Object.fromEntries(
    Object.entries(one).map(([name, figure]) => [name, figure + others.get(name)]),
  ) as unknown as Report;
}
