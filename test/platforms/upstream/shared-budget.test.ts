import { expect, test } from 'vitest';
import { MemoryLedger } from '../../../src/platforms/upstream/memory-ledger.ts';
import { type Gates, WriteReservation } from '../../../src/platforms/upstream/operations.ts';
import { parseRateLimit } from '../../../src/platforms/upstream/retry-after.ts';
import { SharedGate } from '../../../src/platforms/upstream/shared-gate.ts';
import type { BudgetLedger, CallContext } from '../../../src/ports/index.ts';
import { Budgets } from '../../support/fake-open-cloud/budgets.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const limit = 80;
const windowMs = 60_000;
const windows = 10;
const deadlineMs = 20_000;
/** In budgets: what each node is asked for, and its share where nobody gets more than he asks for and the rest is shared evenly. */
const demands = [
  { wanted: 0.2, share: 0.2 },
  { wanted: 0.8, share: 0.4 },
  { wanted: 1, share: 0.4 },
];

/** One node makes a few calls of its own in other lanes, as rankd does to look at a change once more. */
const ownLanes = ['late look', 'readiness'];

test('three nodes that want twice the budget for ten windows have their shares, use all of it and are never refused', async () => {
  const clock = new ManualClock();
  const platform = new Budgets({
    limits: { memberships: limit, assign: limit },
    windowMs,
    now: () => clock.monotonic(),
  });
  const reads: number[] = [];
  const changes: Array<{ node: number; at: number }> = [];
  let refused = 0;
  const ledger = withTrips(new MemoryLedger({ monotonic: () => clock.now() }), clock);
  const nodes = demands.map((_, node) => {
    const open = (operation: 'memberships' | 'assign') =>
      new SharedGate({ operation, name: operation, limit, burstSpacingMs: 20, clock, ledger, node: `node${node}` });
    const gates = { memberships: open('memberships'), assign: open('assign') };
    const send = async (
      operation: keyof typeof gates,
      call: CallContext,
      slot?: Parameters<SharedGate['enter']>[1],
    ) => {
      const gate = gates[operation];
      await gate.enter(call, slot);
      await clock.sleep(50);
      let headers: Record<string, string> = {};
      try {
        headers = platform.charge(operation);
        gate.accepted();
      } catch {
        refused += 1;
      }
      await clock.sleep(50);
      gate.leave(parseRateLimit(new Headers(headers)));
    };
    const callOf = (lane: string): CallContext => ({
      lane,
      deadlineAt: clock.monotonic() + deadlineMs,
      signal: new AbortController().signal,
    });
    const read = async (call: CallContext) => {
      await send('memberships', call);
      reads.push(clock.monotonic());
    };
    const change = async () => {
      const call = callOf('game');
      await read({ ...call, deadlineAt: call.deadlineAt - 1_000 });
      using reservation = await WriteReservation.of(gates as unknown as Gates, ['assign'], call, () => 100);
      await send('assign', { ...call, reservation }, reservation.take(gates.assign));
      changes.push({ node, at: clock.monotonic() });
    };
    return { change, look: (lane: string) => read(callOf(lane)) };
  });
  const endsAt = (1 + windows) * windowMs; // the first window is not counted: nobody has asked for anything before
  const every = async (ms: number, ask: () => Promise<void>) => {
    for (let at = 0; at < endsAt; at += ms) {
      void ask().catch(() => undefined); // there is no room in time for half of what is asked for
      await clock.sleep(ms);
    }
  };
  for (const [node, { wanted }] of demands.entries())
    void every(windowMs / (limit * wanted), async () => nodes[node]?.change());
  for (const lane of ownLanes) void every(windowMs, async () => nodes[1]?.look(lane));
  await clock.advance(endsAt);

  expect(refused).toBe(0);
  const isCounted = (at: number) => at >= windowMs && at < endsAt;
  expect(reads.filter(isCounted).length / (limit * windows)).toBeGreaterThanOrEqual(0.97);
  const shares = demands.map(
    ({ share }, node) =>
      changes.filter((one) => one.node === node && isCounted(one.at)).length / (limit * windows * share),
  );
  for (const share of shares) expect(Math.abs(share - 1), shares.join(' ')).toBeLessThanOrEqual(0.1);
});

/** To ask takes as long as a trip to a server does. */
function withTrips(ledger: MemoryLedger, clock: ManualClock): BudgetLedger {
  return {
    async change(name, change) {
      await clock.sleep(2);
      const result = await ledger.change(name, change);
      await clock.sleep(2);
      return result;
    },
  };
}
