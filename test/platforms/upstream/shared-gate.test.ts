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

test('what calls at other nodes wait for is not left for calls that can wait', async () => {
  const clock = new ManualClock();
  const ledger = new MemoryLedger({ monotonic: () => clock.now() });
  const open = (node: string) =>
    new SharedGate({
      operation: 'memberships',
      name: 'reading members',
      limit: 20,
      maxInFlight: 4,
      clock,
      ledger,
      node,
    });
  const [east, west] = [open('east'), open('west')];
  const enter = (gate: SharedGate, lane: string) =>
    gate.enter({ lane, deadlineAt: clock.monotonic() + 10_000, signal: new AbortController().signal });
  for (let calls = 0; calls < 9; calls += 1) enter(east, 'game').catch(() => undefined);
  await clock.advance(100);
  const entered = enter(west, 'game');
  await clock.advance(100);
  await entered;
  expect(west.pace()).toMatchObject({ left: 10, waiting: 0 }); // 5 are spent, and 5 wait for a connection at the other node
  await clock.advance(2_500); // the other node asks on, so that its calls that wait still count
  west.leave();
  await clock.advance(100);
  expect(west.pace()).toMatchObject({ left: 10, waiting: 0 });
});
