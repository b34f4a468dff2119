import { expect, test } from 'vitest';
import { MemoryLedger } from '../../../src/platforms/upstream/memory-ledger.ts';
import { SharedGate } from '../../../src/platforms/upstream/shared-gate.ts';
import type { BudgetLedger } from '../../../src/ports/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('a call whose slot is reserved starts, though nothing else is left of the budget', async () => {
  const clock = new ManualClock();
  const ledger = new MemoryLedger({ monotonic: () => clock.now() }); // a shared one goes by the clock of records
  const justLost: BudgetLedger = {
    change: ({ operation, open }, change) =>
      ledger.change({ operation, open: ({ now }) => open({ now, lastChangeAt: now }) }, change),
  };
  const own = { operation: 'assign', name: 'giving roles', limit: 300, burstSpacingMs: 20, node: 'east' };
  const gate = new SharedGate({ ...own, clock, ledger: justLost });
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

/** Gates of two nodes on one ledger; `gateOf` opens another. */
function twoNodes({ limit = 20, maxInFlight = 64 } = {}) {
  const clock = new ManualClock();
  const ledger = new MemoryLedger({ monotonic: () => clock.now() });
  const gateOf = (node: string, operation = 'memberships') =>
    new SharedGate({ operation, name: 'reading members', limit, maxInFlight, clock, ledger, node });
  const callOf = (lane: string, withinMs = 10_000) => {
    const aborting = new AbortController();
    return { lane, deadlineAt: clock.monotonic() + withinMs, signal: aborting.signal, abort: () => aborting.abort() };
  };
  /** How many of so many calls that come at once start within a second. */
  const startsOf = async (gate: SharedGate, lane: string, calls: number) => {
    let started = 0;
    const start = () => {
      started += 1;
    };
    for (let call = 0; call < calls; call += 1) gate.enter(callOf(lane), undefined).then(start, () => undefined);
    await clock.advance(1_000);
    return started;
  };
  return { clock, east: gateOf('east'), west: gateOf('west'), gateOf, callOf, startsOf };
}

test('what calls at other nodes wait for is not left for calls that can wait', async () => {
  const { clock, east, west, startsOf } = twoNodes({ maxInFlight: 4 });
  expect(await startsOf(east, 'game', 9)).toBe(4);
  expect(await startsOf(west, 'game', 1)).toBe(1);
  west.leave();
  await clock.advance(100);
  expect(west.pace()).toMatchObject({ left: 10, waiting: 0 }); // 5 are spent, and 5 wait for a connection at the other node
});

test('what the platform tells one node of its count holds for the other', async () => {
  const { clock, east, west, startsOf } = twoNodes();
  await startsOf(east, 'game', 1);
  east.leave({ limit: 20, windowMs: 60_000, remaining: 3, resetMs: 30_000 });
  await clock.advance(100);
  expect(await startsOf(west, 'game', 9)).toBe(3);
});

test('a refusal of the platform holds for all nodes, for as long as it says', async () => {
  const { clock, east, west, startsOf } = twoNodes();
  await startsOf(east, 'game', 1);
  east.leaveRefused({});
  east.close(30_000);
  await clock.advance(100);
  expect(await startsOf(west, 'game', 1)).toBe(0);
  await clock.advance(29_000);
  expect(await startsOf(west, 'game', 1)).toBe(1);
});

test('a lane that asks for much is known for it at every node', async () => {
  const { clock, east, west, startsOf } = twoNodes();
  expect(await startsOf(east, 'greedy', 9)).toBe(9);
  for (let calls = 0; calls < 9; calls += 1) east.leave();
  await clock.advance(100);
  expect(await startsOf(west, 'modest', 1)).toBe(1); // it asks, and hears of that
  expect(await startsOf(west, 'greedy', 10)).toBe(8); // a tenth of the budget is left to others
  expect(await startsOf(west, 'modest', 2)).toBe(2);
});

test('a slot that is reserved is spent at once, and who does without it gives it back to all', async () => {
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

test('a slot that can be reserved only later is waited for in the line, and not at all if it comes too late', async () => {
  const { clock, east, west, callOf, startsOf } = twoNodes();
  await startsOf(west, 'one', 20);
  west.leave({ limit: 20, windowMs: 60_000, remaining: 0, resetMs: 30_000 });
  await clock.advance(100);
  await startsOf(east, 'one', 1); // it asks, and hears of that
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

test('who gives up while the ledger grants a slot leaves it to others', async () => {
  const { clock, east, west, callOf, startsOf } = twoNodes({ limit: 4 });
  const call = callOf('game');
  const given = expect(east.enter(call)).rejects.toMatchObject({ code: 'platform_busy' });
  call.abort();
  await given;
  await clock.advance(100);
  expect(await startsOf(west, 'one', 4)).toBe(4);
});
