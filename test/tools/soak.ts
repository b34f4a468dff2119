import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import type { Fault, FaultKind } from '../support/fake-open-cloud/index.ts';
import { openBench } from './bench.ts';
import { Callers } from './callers.ts';
import { compare } from './compare.ts';
import { figuresOf, median, type ProcessFigures } from './process-figures.ts';
import { SeededRandom } from './random.ts';

/**
 * `npm run soak -- --minutes 10`: applies a steady load and causes faults. Exits with 1 if memory or handles grow, or
 * if anything is inconsistent.
 */
const { minutes, limit, seed } = new Command('npm run soak --')
  .description('Applies steady load with faults; exits with 1 if memory or handles grow, or if records disagree.')
  .option('--minutes <n>', 'duration; one or two minutes are too short to show growth', wholeNumber(1, 10_000), 10)
  .option(
    '--limit <n>',
    'requested changes per minute, and allowed calls per minute for each operation',
    wholeNumber(1, 100_000),
    300,
  )
  .option('--seed <n>', 'repeats the load of an earlier run', wholeNumber(0, 2 ** 31), Date.now() % 2 ** 31)
  .parse()
  .opts<{ minutes: number; limit: number; seed: number }>();
const runsMs = minutes * 60_000;
const sampleEveryMs = Math.max(1_000, runsMs / 30);
const maxGrowth = 1.2;

const limits = { group: limit, roles: limit, memberships: limit, assign: limit, unassign: limit };
await using bench = await openBench({ memberCount: 200, limits, latencyMs: 20, lagMs: 1_000 });
const random = new SeededRandom(seed);
const callers = new Callers(bench, random);
// With a larger heap, V8 retains garbage for minutes, which looks like a leak. Without a limit, the young generation
// grows with each burst.
const heap = '--max-old-space-size=64 --max-semi-space-size=8';
await using daemon = await bench.startDaemon({ NODE_OPTIONS: heap });
const pid = daemon.process.pid ?? 0;
const samples: ProcessFigures[] = [];
const ended = AbortSignal.timeout(runsMs);
const requests: Array<Promise<unknown>> = [];

print(`${minutes} min at ${limit} changes per minute; to repeat this: --seed ${seed}`);
print(row(['seconds', 'answers', 'applied', 'memory', 'data', 'threads', 'handles']));
await Promise.all([load(), injectFaults(), sample()]);
await Promise.all(requests);
bench.fake.faults.clear();
const unreconciled = await bench.openAfter(30_000);
process.exitCode = await conclude();

/** Sends requests at a steady rate without waiting for responses, because games do not wait for each other. */
async function load(): Promise<void> {
  while (!ended.aborted) {
    requests.push(callers.ask(daemon.url, bench.members));
    await delay(60_000 / limit);
  }
}

async function injectFaults(): Promise<void> {
  const kinds: FaultKind[] = [
    'status 500',
    'status 503',
    'status 429',
    'html',
    'truncated',
    'cut',
    'reset',
    'hang',
    'oversized',
  ];
  while (!ended.aborted) {
    const kind = random.pick(kinds);
    const operation = random.pick<Fault['operation']>(['assign', 'unassign', 'memberships', 'roles']);
    const when = kind === 'status 429' ? 'before' : random.pick(['before', 'after'] as const);
    bench.fake.faults.add({ operation, kind, when, times: random.between(1, 3) });
    await delay(random.between(500, 3_000));
  }
}

async function sample(): Promise<void> {
  const startedAt = performance.now();
  while (!ended.aborted) {
    await delay(sampleEveryMs);
    const figures = figuresOf(pid);
    samples.push(figures);
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const { residentMiB, dataMiB, threads, handles } = figures;
    print(row([seconds, callers.answered.length, callers.acknowledged, residentMiB, dataMiB, threads, handles]));
  }
}

/** Prints the results, and resolves with the exit code. */
async function conclude(): Promise<number> {
  const history = await bench.history();
  // ignores stray writes, because this history lacks the intended roles, which explain the writes of a reverted change
  const { lost, doubled, differing } = compare({ ...bench, history, answered: callers.answered });
  const wrong = [...lost, ...doubled, ...differing, ...bench.fake.violations()];
  const warm = samples.slice(Math.ceil(samples.length / 4)); // the first quarter fills caches and the young generation
  const third = Math.floor(warm.length / 3);
  const [first, last] = [warm.slice(0, third), warm.slice(-third)];
  const memory = [first, last].map((part) => median(part.map(({ residentMiB }) => residentMiB)));
  const handles = [first, last].map((part) => median(part.map((one) => one.handles)));
  const [memoryFirst = 0, memoryLast = 0] = memory;
  const [handlesFirst = 0, handlesLast = 0] = handles;
  const codes = [...callers.answers].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  print('');
  print(`requests    ${requests.length}`);
  print(`answers     ${codes.join(', ')}`);
  const calls = Object.entries(Object.groupBy(bench.fake.journal.entries, ({ operation }) => operation));
  print(`calls       ${calls.map(([operation, entries]) => `${operation}: ${entries.length}`).join(', ')}`);
  print(`applied     ${history.filter(({ state }) => state === 'applied').length}, unreconciled ${unreconciled}`);
  print(`memory      ${memoryFirst} MiB in the first third, ${memoryLast} MiB in the last`);
  print(`handles     ${handlesFirst} in the first third, ${handlesLast} in the last`);
  print(`disagreeing ${wrong.length}`);
  for (const sentence of wrong.slice(0, 20)) print(`  ${sentence}`);
  const grows = memoryLast > memoryFirst * maxGrowth || handlesLast > handlesFirst * maxGrowth;
  return grows || wrong.length > 0 || unreconciled > 0 ? 1 : 0;
}

function row(cells: Array<string | number>): string {
  return cells.map((cell) => String(cell).padStart(9)).join('');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
