import { expect, test } from 'vitest';
import { parseRateLimit } from '../../../src/platforms/upstream/answer.ts';
import { Gate } from '../../../src/platforms/upstream/gate.ts';
import { type Gates, WriteReservation } from '../../../src/platforms/upstream/operations.ts';
import type { BudgetLedger, CallContext } from '../../../src/ports/index.ts';
import { Budgets } from '../../support/fake-open-cloud/budgets.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryLedger } from '../../support/memory-ledger.ts';

test('a call with a reserved slot starts although no other slot is left', async () => {
  const clock = new ManualClock();
  const ledger = new MemoryLedger(clock);
  const justLost: BudgetLedger = {
    change: ({ operation, open }, change) =>
      ledger.change({ operation, open: ({ now }) => open({ now, lastChangeAt: now }) }, change),
  };
  const options = { operation: 'assign', name: 'giving roles', limit: 300, burstSpacingMs: 20, node: 'east' };
  const gate = new Gate({ ...options, clock, ledger: justLost });
  const call = { lane: 'game', deadlineAt: clock.monotonic() + 10_000, signal: new AbortController().signal };
  const slot = await gate.reserve(call);
  const none = expect(gate.reserve(call)).rejects.toMatchObject({ code: 'platform_busy' });
  await clock.advance(1_000);
  await none;
  const entered = gate.enter(call, slot);
  await clock.advance(1_000);
  await entered;
  gate.leave();
  await gate.end();
});

/** Creates gates for two nodes that share a ledger. */
function twoNodes({ limit = 20, maxInFlight = 64 } = {}) {
  const clock = new ManualClock();
  const ledger = new MemoryLedger(clock);
  const gateOf = (node: string, operation = 'memberships') =>
    new Gate({ operation, name: 'reading members', limit, maxInFlight, clock, ledger, node });
  const callOf = (lane: string, withinMs = 10_000) => {
    const aborting = new AbortController();
    return { lane, deadlineAt: clock.monotonic() + withinMs, signal: aborting.signal, abort: () => aborting.abort() };
  };
  /** Resolves with the number of `calls` that start within a second. */
  const startsOf = async (gate: Gate, lane: string, calls: number) => {
    let started = 0;
    const start = () => {
      started += 1;
    };
    for (let call = 0; call < calls; call += 1) gate.enter(callOf(lane)).then(start, () => undefined);
    await clock.advance(1_000);
    return started;
  };
  return { clock, east: gateOf('east'), west: gateOf('west'), gateOf, callOf, startsOf };
}

test('slots for which calls at other nodes are waiting do not count as left', async () => {
  const { clock, east, west, startsOf } = twoNodes({ maxInFlight: 4 });
  expect(await startsOf(east, 'game', 9)).toBe(4);
  expect(await startsOf(west, 'game', 1)).toBe(1);
  west.leave();
  await clock.advance(100);
  // 5 slots are spent, and 5 are set aside for calls that wait for a connection on the other node.
  expect(west.pace()).toMatchObject({ left: 10, waiting: 0 });
});

test('the count that the platform reports to one node applies to the other', async () => {
  const { clock, east, west, startsOf } = twoNodes();
  await startsOf(east, 'game', 1);
  east.leave({ limit: 20, windowMs: 60_000, remaining: 3, resetMs: 30_000 });
  await clock.advance(100);
  expect(await startsOf(west, 'game', 9)).toBe(3);
});

test('a pause that the platform requests applies to all nodes until it ends', async () => {
  const { clock, east, west, startsOf } = twoNodes();
  await startsOf(east, 'game', 1);
  east.leaveRefused({});
  east.close(30_000);
  await clock.advance(100);
  expect(await startsOf(west, 'game', 1)).toBe(0);
  await clock.advance(29_000);
  expect(await startsOf(west, 'game', 1)).toBe(1);
});

test('a heavy lane is heavy at every node', async () => {
  const { clock, east, west, startsOf } = twoNodes();
  expect(await startsOf(east, 'greedy', 9)).toBe(9);
  for (let calls = 0; calls < 9; calls += 1) east.leave();
  await clock.advance(100);
  expect(await startsOf(west, 'modest', 1)).toBe(1); // this request updates the node's copy of the account
  expect(await startsOf(west, 'greedy', 10)).toBe(8); // a tenth of the budget is left for others
  expect(await startsOf(west, 'modest', 2)).toBe(2);
});

test('a reserved slot counts as spent at once, and is free for all nodes once it is released', async () => {
  const { clock, east, west, callOf, startsOf } = twoNodes();
  const slots = [1, 2, 3].map(() => east.reserve(callOf('game', 20_000)));
  await clock.advance(100);
  expect(await startsOf(west, 'one', 10)).toBe(10);
  expect(await startsOf(west, 'other', 5)).toBe(5);
  expect(await startsOf(west, 'third', 3)).toBe(2);
  for (const slot of slots) east.release(await slot);
  await clock.advance(100);
  expect(await startsOf(west, 'fourth', 3)).toBe(3);
});

test('a reservation waits in the queue for a slot, and is refused at once if the slot would come too late', async () => {
  const { clock, east, west, callOf, startsOf } = twoNodes();
  await startsOf(west, 'one', 20);
  west.leave({ limit: 20, windowMs: 60_000, remaining: 0, resetMs: 30_000 });
  await clock.advance(100);
  await startsOf(east, 'one', 1); // this request updates the node's copy of the account
  await expect(east.reserve(callOf('game', 20_000))).rejects.toMatchObject({ code: 'platform_busy' });
  const slot = east.reserve(callOf('game', 40_000));
  const reserved: unknown[] = [];
  slot.then(
    (one) => reserved.push(one),
    () => undefined,
  );
  await clock.advance(25_000);
  expect(reserved).toEqual([]);
  expect(east.pace().waiting).toBe(1);
  await clock.advance(6_000);
  expect(reserved).toHaveLength(1);
});

test('a call that gives up while the ledger grants its slot returns the slot', async () => {
  const { clock, east, west, callOf, startsOf } = twoNodes({ limit: 4 });
  const call = callOf('game');
  const given = expect(east.enter(call)).rejects.toMatchObject({ code: 'platform_busy' });
  call.abort();
  await given;
  await clock.advance(100);
  expect(await startsOf(west, 'one', 4)).toBe(4);
});

test('a change is refused at once if one of its writes gets no slot in time, even if another could wait for one', async () => {
  const clock = new ManualClock();
  const gateOf = (operation: string) => new Gate({ operation, name: operation, limit: 1, clock, node: 'this' });
  const gates = { assign: gateOf('assign'), unassign: gateOf('unassign') } as Partial<Gates> as Gates;
  const call = { lane: 'key', deadlineAt: clock.monotonic() + 30_000, signal: new AbortController().signal };
  for (const gate of [gates.assign, gates.unassign]) await gate.enter(call);
  gates.unassign.leave({ limit: 1, windowMs: 60_000, remaining: 0, resetMs: 10_000 });
  const refused = WriteReservation.of(gates, ['assign', 'unassign'], call, () => 100);
  await expect(refused).rejects.toMatchObject({ code: 'platform_busy', retryAfterMs: 60_000 });
});

test('two nodes that need the last slots of two operations do not each take one of them', async () => {
  const clock = new ManualClock();
  const stored = new MemoryLedger(clock);
  /** Returns a ledger that is slower to change the account of the operation `late`. */
  const slowLedger = (late: string): BudgetLedger => ({
    async change(name, change) {
      await clock.sleep(name.operation === late ? 5 : 1);
      // Opens the account as if a change had just been made, so that only one slot is left.
      return stored.change({ ...name, open: (facts) => name.open({ ...facts, lastChangeAt: facts.now }) }, change);
    },
  });
  const nodeWith = (node: string, late: 'assign' | 'unassign'): Gates => {
    const gate = (operation: string) =>
      new Gate({ operation, name: operation, limit: 300, clock, ledger: slowLedger(late), node });
    return { assign: gate('assign'), unassign: gate('unassign') } as Partial<Gates> as Gates;
  };
  const reserve = (gates: Gates) =>
    WriteReservation.of(
      gates,
      ['assign', 'unassign'],
      { lane: 'key', deadlineAt: clock.monotonic() + 10_000, signal: new AbortController().signal },
      () => 100,
    );
  const asked = Promise.allSettled([reserve(nodeWith('a', 'assign')), reserve(nodeWith('b', 'unassign'))]);
  const answers = await clock.passUntil(asked);
  expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
});

const limit = 80;
const windowMs = 60_000;
const windows = 10;
const deadlineMs = 20_000;
/** Each node's demand and fair share, as fractions of the budget. */
const demands = [
  { wanted: 0.2, share: 0.2 },
  { wanted: 0.8, share: 0.4 },
  { wanted: 1, share: 0.4 },
];

/** One node makes a few calls in other lanes, as rankd does for late reads and readiness checks. */
const ownLanes = ['late read', 'readiness'];

test('three nodes that need twice the budget for ten windows get their shares, use all of it and are never refused', async () => {
  const clock = new ManualClock();
  const platform = new Budgets({
    limits: { memberships: limit, assign: limit },
    windowMs,
    now: () => clock.monotonic(),
  });
  const reads: number[] = [];
  const changes: Array<{ node: number; at: number }> = [];
  let refused = 0;
  const ledger = withTrips(new MemoryLedger(clock), clock);
  const nodes = demands.map((_, node) => {
    const open = (operation: 'memberships' | 'assign') =>
      new Gate({ operation, name: operation, limit, burstSpacingMs: 20, clock, ledger, node: `node${node}` });
    const gates = { memberships: open('memberships'), assign: open('assign') };
    const send = async (operation: keyof typeof gates, call: CallContext, slot?: Parameters<Gate['enter']>[1]) => {
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
  // One more window, for warming up: in the first one, the nodes do not know each other's demand yet.
  const endsAt = (1 + windows) * windowMs;
  const every = async (ms: number, ask: () => Promise<void>) => {
    for (let at = 0; at < endsAt; at += ms) {
      void ask().catch(() => undefined); // half of the calls get no slot in time
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

/** Adds a network round trip to each change of the ledger. */
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
