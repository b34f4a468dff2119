import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exitCodes } from '../../src/cli/output/errors.ts';
import { rankBody } from '../support/answers.ts';
import { SteppedClock } from '../support/stepped-clock.ts';
import { benchRanks, openBench, place } from '../tools/bench.ts';
import { type Answered, compare } from '../tools/compare.ts';

/**
 * How many scenarios to run. If there are more than one, as with `npm run fuzz -- --races 50`, they have longer pauses
 * and slower writes.
 */
const runs = Number(process.env['RACE_RUNS'] ?? 1);
const [maxPauseMs, maxWriteMs] = runs === 1 ? [600, 400] : [9_000, 7_000];

const hourMs = 3_600_000;
const memberCount = 3;
const offsetMs = fc.integer({ min: -5 * hourMs, max: 5 * hourMs });
const side = fc.constantFrom('daemon', 'commands');
const wanted = { member: fc.nat(memberCount - 1), newRankId: fc.constantFrom(...benchRanks) };

/** None of these actions waits for the ones before it. */
const act = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant('a game asks'), ...wanted }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('a command asks'), ...wanted }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('clock'), side, ms: offsetMs }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('pause'), side, ms: fc.integer({ min: 20, max: maxPauseMs }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('slow write'), ms: fc.integer({ min: 20, max: maxWriteMs }) }),
  },
);
const settings = fc.record({ deadlineS: fc.constantFrom(5, 20, 60), offsetMs });
const scenario = fc.record({
  daemon: settings,
  commands: settings,
  acts: fc.array(fc.tuple(fc.nat(200), act), { minLength: 15, maxLength: 25 }),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer Value> ? Value : never;

test(
  'a daemon and commands never write for one member at once, with any clocks, deadlines and pauses, and all records agree',
  async () => {
    await fc.assert(fc.asyncProperty(scenario, runScenario), { numRuns: runs, endOnFailure: true });
  },
  120_000 * runs,
);

async function runScenario({ daemon, commands, acts }: Scenario): Promise<void> {
  const endless = 1_000_000;
  const limits = { group: endless, roles: endless, memberships: endless, assign: endless, unassign: endless };
  await using bench = await openBench({ memberCount, limits });
  const { fake, home, secret } = bench;
  fake.latencyMs = 20;
  const clocks = {
    daemon: new SteppedClock(home.path('clock of the daemon'), daemon),
    commands: new SteppedClock(home.path('clock of the commands'), commands),
  };
  const server = await bench.startDaemon(envOf(clocks.daemon, daemon));
  await using _server = server;
  const running = { daemon: new Set([server.process]), commands: new Set<ChildProcess>() };
  const pauses: Promise<void>[] = [];
  const answers: Promise<Answered>[] = [];

  const askAsGame = async (asked: { rankeeId: number; newRankId: number }): Promise<Answered> => {
    const body = rankBody({ ...asked, command: `request ${answers.length}` });
    const { status, headers } = await server.post(`/v1/ranker?placeid=${place}`, { key: secret, body });
    return { ...asked, status, changeId: String(headers['x-rank-change'] ?? '') };
  };
  const askByCommand = async (asked: { rankeeId: number; newRankId: number }): Promise<Answered> => {
    const env = { ...envOf(clocks.commands, commands), RANKD_PLATFORM_API_KEY: fake.apiKey };
    const child = home.start(['rank', 'set', String(asked.rankeeId), String(asked.newRankId), '--json'], { env });
    running.commands.add(child);
    const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    running.commands.delete(child);
    if (code === 0) return { ...asked, status: 200, changeId: JSON.parse(out).change.id };
    return { ...asked, status: code === exitCodes.outcome_unknown ? 504 : 503, changeId: '' };
  };
  const pause = async (children: ChildProcess[], ms: number) => {
    for (const child of children) child.kill('SIGSTOP');
    await delay(ms);
    for (const child of children) child.kill('SIGCONT');
  };

  for (const [afterMs, act] of acts) {
    await delay(afterMs);
    if (act.what === 'clock') clocks[act.side].step(act.ms);
    else if (act.what === 'pause') pauses.push(pause([...running[act.side]], act.ms));
    else if (act.what === 'slow write') fake.faults.add({ operation: 'assign', kind: 'slow', delayMs: act.ms });
    else {
      const asked = { rankeeId: bench.members[act.member] ?? 0, newRankId: act.newRankId };
      answers.push(act.what === 'a game asks' ? askAsGame(asked) : askByCommand(asked));
    }
  }
  await Promise.all(pauses);
  const answered = await Promise.all(answers);
  expect(await bench.openAfter(30_000)).toBe(0);
  const history = (await bench.history()).map((change) => ({ ...change, command: requestOf(change) }));
  const inconsistencies = compare({ ...bench, history, answered });
  expect([...Object.values(inconsistencies).flat(), ...fake.violations()]).toEqual([]);
}

function envOf(clock: SteppedClock, { deadlineS }: { deadlineS: number }): Record<string, string> {
  return { ...clock.env, RANKD_SERVER_DEADLINE: `${deadlineS}s` };
}

/** Returns the name of the game's request that caused a change; `undefined` if a command caused it. */
function requestOf({ command }: { command?: string | null | undefined }): string | undefined {
  return command?.startsWith('request ') ? command : undefined;
}
