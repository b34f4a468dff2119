import { describe, expect, test, vi } from 'vitest';
import type { ChangeOutcome } from '../../../src/core/change-state.ts';
import { recoverLateWrite } from '../../../src/usecases/change/carry-out.ts';
import { recordOutcome } from '../../../src/usecases/change/change-record.ts';
import type { PlatformTrust } from '../../../src/usecases/change/platform-trust.ts';
import { applied, begin, newChange, record } from './samples.ts';
import type { StoreCase } from './store-case.ts';

const notApplied: ChangeOutcome = {
  state: 'failed',
  code: 'platform_unavailable',
  message: 'Nothing was sent.',
  rolesAfter: [100, 200],
};
const leaseEnded = () => 0;

export function lateWriteContract(at: StoreCase): void {
  /**
   * Runs the recovery on `at.store` as if that store had stalled during a write and `at.other` had taken over the
   * change.
   */
  const settle = async (change: ReturnType<typeof newChange>, leftMs = leaseEnded) => {
    const reportLateWrite = vi.fn();
    const trust = { reportLateWrite } as unknown as PlatformTrust;
    const settled = recoverLateWrite({ store: at.store, clock: at.clock, trust }, change, leftMs);
    return { settled, reportLateWrite };
  };
  const audited = async () =>
    (await at.store.listAudit({ action: 'rank.late_write', limit: 9 })).map(({ subject }) => subject);
  describe('a late write', () => {
    test('is audited, and its change is reopened with its target roles once the new holder has finished', async () => {
      const change = newChange();
      await begin(at.other, change);
      const { settled, reportLateWrite } = await settle(change);
      await vi.waitUntil(
        async () => {
          await at.clock.advance(500);
          return (await audited()).length > 0;
        },
        { timeout: 20_000 },
      );
      expect(await at.store.openChanges()).toMatchObject([{ change: { id: change.id, state: 'pending' } }]);
      expect(reportLateWrite).not.toHaveBeenCalled();
      await recordOutcome({ store: at.other, clock: at.clock }, change.id, notApplied);
      await at.clock.passUntil(settled);
      expect(await at.other.openChanges()).toMatchObject([
        { change: { id: change.id, state: 'unknown', rolesAfter: [100, 300] }, holder: 'none' },
      ]);
      expect(reportLateWrite).toHaveBeenCalledExactlyOnceWith(change, 'reopened');
      expect(await audited()).toEqual([change.id]);
    });

    test('is audited and reported, but does not reopen the change if the member has a newer one', async () => {
      const change = newChange();
      await begin(at.other, change);
      await recordOutcome({ store: at.other, clock: at.clock }, change.id, notApplied);
      await record(at.other, newChange({ state: 'applied' }));
      const { settled, reportLateWrite } = await settle(change);
      await at.clock.passUntil(settled);
      expect(reportLateWrite).toHaveBeenCalledExactlyOnceWith(change, 'superseded');
      expect(await audited()).toEqual([change.id]);
      expect(await at.store.openChanges()).toEqual([]);
    });

    test('is neither audited nor reported while this node has its lease', async () => {
      const change = newChange();
      await begin(at.store, change);
      const left = at.store.leaseLeft();
      expect(left()).toBeGreaterThan(0);
      await recordOutcome({ store: at.store, clock: at.clock }, change.id, applied);
      const { settled, reportLateWrite } = await settle(change, left);
      await settled;
      expect(reportLateWrite).not.toHaveBeenCalled();
      expect(await audited()).toEqual([]);
    });
  });
}
