import { expect, onTestFinished, test } from 'vitest';
import { parseRateLimit } from '../../../src/platforms/upstream/answer.ts';
import { Gate } from '../../../src/platforms/upstream/gate.ts';
import type { BudgetLedger } from '../../../src/ports/index.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { newChange, record } from '../../contracts/store/samples.ts';
import { Budgets } from '../../support/fake-open-cloud/budgets.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

const limit = 60;
const latencyMs = 80;

/**
 * Creates a platform with one-minute rate-limit windows. Nodes that `join` it share its budget; `pass` advances the
 * clock and waits for the ledger's responses.
 */
async function nodesOn(options: { sendsHeaders: boolean }) {
  const { address } = await postgresDatabase();
  const clock = new ManualClock();
  const platform = new Budgets({ limits: { memberships: limit }, windowMs: 60_000, now: () => clock.monotonic() });
  platform.sendsHeaders = options.sendsHeaders;
  const carriedOut: Array<{ node: string; at: number }> = [];
  let refused = 0;
  let underWay = 0;
  const join = async (node: string) => {
    const store = await openPostgresStore({ address, clock });
    onTestFinished(() => store.close());
    const shared = store.budgetLedger('c'.repeat(64));
    const ledger: BudgetLedger = {
      async change(name, change) {
        underWay += 1;
        try {
          return (await shared?.change(name, change)) as never;
        } finally {
          underWay -= 1;
        }
      },
    };
    const gate = new Gate({
      operation: 'memberships',
      name: 'tests',
      limit,
      burstSpacingMs: 20,
      clock,
      ledger,
      node,
    });
    const call = async (lane = node) => {
      const signal = new AbortController().signal;
      try {
        await gate.enter({ lane, deadlineAt: clock.monotonic() + 10_000, signal });
      } catch {
        return; // no slot became free in time
      }
      await clock.sleep(latencyMs);
      let headers: Record<string, string> = {};
      try {
        headers = platform.charge('memberships');
        carriedOut.push({ node, at: clock.monotonic() });
        gate.accepted();
      } catch {
        refused += 1;
      }
      await clock.sleep(latencyMs);
      gate.leave(parseRateLimit(new Headers(headers)));
    };
    return { node, call, store, callsAMinute: 0 };
  };
  const pass = async (ms: number) => {
    await clock.advance(ms);
    // A response can trigger the next request a few event-loop turns later.
    for (let idle = 0; idle < 5; idle = underWay > 0 ? 0 : idle + 1)
      await new Promise((resolve) => setImmediate(resolve));
  };
  return { address, clock, join, pass, carriedOut, refused: () => refused };
}

type Joined = Awaited<ReturnType<Awaited<ReturnType<typeof nodesOn>>['join']>>;

test.each([
  { count: 'reports its count', sendsHeaders: true },
  { count: 'does not report it', sendsHeaders: false },
])(
  'three nodes that need twice the budget, one of them late, get fair shares and no rejections if the platform $count',
  async ({ sendsHeaders }) => {
    const { clock, join, pass, carriedOut, refused } = await nodesOn({ sendsHeaders });
    const nodes: Joined[] = [];
    const endsAt = 180_000;
    const lateAt = 15_000;
    for (const [node, callsAMinute] of [
      ['busy', limit],
      ['calm', limit / 2],
    ] as const)
      nodes.push({ ...(await join(node)), callsAMinute });
    const owed = new Map<string, number>();
    const stepMs = 250;
    for (let at = 0; at < endsAt; at += stepMs) {
      if (at === lateAt) nodes.push({ ...(await join('late')), callsAMinute: limit / 2 });
      for (const { node, call, callsAMinute } of nodes) {
        const due = (owed.get(node) ?? 0) + (callsAMinute * stepMs) / 60_000;
        for (let n = 1; n <= due; n += 1) void call();
        owed.set(node, due % 1);
      }
      await pass(stepMs);
    }
    expect(refused()).toBe(0);
    const from = 60_000;
    const settled = carriedOut.filter(({ at }) => at >= from && at < endsAt);
    const fair = settled.length / 3;
    expect(settled.length).toBeGreaterThanOrEqual(0.97 * limit * ((endsAt - from) / 60_000));
    for (const { node } of nodes)
      expect(settled.filter((one) => one.node === node).length, node).toBeGreaterThanOrEqual(0.9 * fair);
    for (const { at } of carriedOut)
      expect(carriedOut.filter((one) => one.at >= at && one.at < at + 60_000).length).toBeLessThanOrEqual(
        sendsHeaders ? 2 * limit : limit,
      );
    expect(clock.monotonic()).toBe(endsAt);
  },
);

test.each([
  { who: 'a node that knew it', count: 'reports its count', sendsHeaders: true },
  { who: 'a node that knew it', count: 'does not report it', sendsHeaders: false },
  { who: 'a node that starts then', count: 'reports its count', sendsHeaders: true },
  { who: 'a node that starts then', count: 'does not report it', sendsHeaders: false },
])(
  'an account lost in a failover counts as spent for a window, except for one call, for $who, if the platform $count',
  async ({ who, sendsHeaders }) => {
    const { address, clock, join, pass, carriedOut, refused } = await nodesOn({ sendsHeaders });
    const first = await join('first');
    const asks = async ({ call }: Pick<Joined, 'call'>, calls: number, lane?: string) => {
      const before = carriedOut.length;
      for (let times = 0; times < calls; times += 1) void call(lane);
      for (let steps = 0; steps < 200; steps += 1) await pass(20); // calls do not all start at once
      return carriedOut.length - before;
    };
    const spent = 40;
    expect(await asks(first, spent)).toBe(spent);
    await record(first.store, newChange({ requestedAt: clock.now(), state: 'refused' }));
    await onServer(address, 'DELETE FROM rankd.platform_budget');
    const next = who === 'a node that knew it' ? first : await join('next');
    const lostAt = clock.monotonic();
    expect(await asks(next, 1)).toBe(1); // even in a lane that has made many calls
    expect(await asks(next, limit, 'other')).toBe(sendsHeaders ? limit - spent - 1 : 0);
    await pass(lostAt + 59_000 - clock.monotonic());
    expect(await asks(next, 30, 'third')).toBe(30);
    expect(refused()).toBe(0);
  },
);
