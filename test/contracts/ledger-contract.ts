import { describe, expect, test } from 'vitest';
import type { AccountName, BudgetLedger } from '../../src/ports/index.ts';
import { ManualClock } from '../support/manual-clock.ts';

interface Tally {
  count: number;
  by: string[];
}

const tally: AccountName<Tally> = { operation: 'assign', open: () => ({ count: 0, by: [] }) };
const add = (by: string) => (account: Tally) => {
  account.by.push(by);
  account.count += 1;
  return account.count;
};

/**
 * Defines the tests that every BudgetLedger must pass. `open` returns two handles on the same ledger, or the same
 * handle twice.
 */
export function ledgerContract(
  name: string,
  open: (clock: ManualClock) => Promise<{ ledger: BudgetLedger; other: BudgetLedger }>,
): void {
  describe(name, () => {
    test('both handles see each change, and each operation has a separate account', async () => {
      const { ledger, other } = await open(new ManualClock());
      expect(await ledger.change(tally, add('one'))).toBe(1);
      expect(await other.change(tally, add('other'))).toBe(2);
      expect(await ledger.change({ ...tally, operation: 'unassign' }, add('one'))).toBe(1);
      expect(await ledger.change(tally, ({ by }) => by)).toEqual(['one', 'other']);
    });

    test('concurrent changes are neither lost nor counted twice', async () => {
      const { ledger, other } = await open(new ManualClock());
      const changes = Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? ledger : other).change(tally, add(`${n}`)));
      const counts = await Promise.all(changes);
      expect(counts.toSorted((one, two) => one - two)).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
      const stored = await other.change(tally, ({ by }) => by);
      expect(new Set(stored).size).toBe(60);
      expect(stored).toHaveLength(60);
    });

    test('mutating a returned account does not change the stored one', async () => {
      const { ledger } = await open(new ManualClock());
      const mine = await ledger.change(tally, (account) => account);
      mine.count = 99;
      expect(await ledger.change(tally, ({ count }) => count)).toBe(0);
    });

    test('a change that throws changes nothing', async () => {
      const { ledger, other } = await open(new ManualClock());
      const thrown = ledger.change(tally, (account) => {
        account.count = 99;
        throw new TypeError('a mistake');
      });
      await expect(thrown).rejects.toThrow('a mistake');
      expect(await other.change(tally, ({ count }) => count)).toBe(0);
    });

    test('both handles use the same time', async () => {
      const clock = new ManualClock();
      const { ledger, other } = await open(clock);
      const before = await ledger.change(tally, (_, now) => now);
      await clock.skip(1_234);
      expect((await other.change(tally, (_, now) => now)) - before).toBe(1_234);
    });
  });
}
