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
