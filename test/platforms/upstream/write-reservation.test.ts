import { expect, test } from 'vitest';
import { MemoryLedger } from '../../../src/platforms/upstream/memory-ledger.ts';
import { type Gates, WriteReservation } from '../../../src/platforms/upstream/operations.ts';
import { SharedGate } from '../../../src/platforms/upstream/shared-gate.ts';
import type { BudgetLedger } from '../../../src/ports/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('two nodes that want the last slot of two operations do not each take one of them', async () => {
  const clock = new ManualClock();
  const kept = new MemoryLedger({ monotonic: () => clock.now() });
  /** A ledger that a node reaches sooner for one operation than for the other. */
  const ledgerBehind = (late: string): BudgetLedger => ({
    async change(name, change) {
      await clock.sleep(name.operation === late ? 5 : 1);
      return kept.change({ ...name, open: (facts) => name.open({ ...facts, lastChangeAt: facts.now }) }, change); // one slot is left
    },
  });
  const nodeWith = (node: string, late: 'assign' | 'unassign'): Gates => {
    const gate = (operation: string) =>
      new SharedGate({ operation, name: operation, limit: 300, clock, ledger: ledgerBehind(late), node });
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
