import { describe, expect, test } from 'vitest';
import { verifyAudit } from '../../../src/usecases/history/verify-audit.ts';
import { applied, begin, finish, newChange, operate, record, unknown } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function retentionContract(at: StoreCase): void {
  const append = (subject: string) => operate(at).appendAudit({ by: 'daemon', action: 'x', subject, detail: {} });

  describe('retention of changes', () => {
    const left = async () => (await at.other.listChanges({ limit: 99 })).map(({ rankeeId }) => rankeeId).reverse();

    test('removes what ended before the moment, a step at a time from the oldest on, and tells where to go on', async () => {
      for (let rankeeId = 1; rankeeId <= 5; rankeeId += 1) {
        await record(at.store, newChange({ rankeeId, state: 'refused', requestedAt: rankeeId * 1_000 }));
      }
      const first = await at.store.pruneChanges({ before: 4_000, limit: 2 });
      expect(first).toEqual({ removed: 2, next: expect.any(String) });
      expect(await left()).toEqual([3, 4, 5]);
      const second = await at.store.pruneChanges({ before: 4_000, cursor: first.next, limit: 2 });
      expect(second).toEqual({ removed: 1, next: expect.any(String) });
      expect(await at.store.pruneChanges({ before: 4_000, cursor: second.next, limit: 2 })).toEqual({ removed: 0 });
      expect(await left()).toEqual([4, 5]);
      expect(await at.store.pruneChanges({ before: 4_000, limit: 2 })).toEqual({ removed: 0 });
    });

    test('never removes an open change, nor one that ended later than it was asked for', async () => {
      const [pending, unconfirmed, slow] = [1, 2, 3].map((rankeeId) => newChange({ rankeeId, requestedAt: 1_000 }));
      for (const change of [pending, unconfirmed, slow]) {
        if (change !== undefined) expect(await begin(at.store, change, { after: undefined })).toBe(true);
      }
      await finish(at, unconfirmed?.id ?? '', unknown);
      await finish(at, slow?.id ?? '', applied);
      await record(at.store, newChange({ rankeeId: 4, state: 'refused', requestedAt: 1_000 }));
      await at.store.pruneChanges({ before: at.clock.now(), limit: 9 });
      expect(await left()).toEqual([1, 2, 3]);
      await at.clock.advance(1);
      await at.store.pruneChanges({ before: at.clock.now(), limit: 9 });
      expect(await left()).toEqual([1, 2]);
      expect(await at.store.openChanges()).toHaveLength(2);
    });

    test('gets past rows that a clock set wrong has dated later', async () => {
      for (const requestedAt of [9_000, 1_000]) {
        await record(at.store, newChange({ rankeeId: requestedAt, state: 'refused', requestedAt }));
      }
      await at.store.pruneChanges({ before: 5_000, limit: 9 });
      expect(await left()).toEqual([9_000]);
    });
  });

  describe('retention of the audit', () => {
    const subjects = async () =>
      (await at.other.listAudit({ limit: 99, oldestFirst: true })).map(({ subject }) => subject);

    test('removes the beginning of the chain up to the moment, and what is left still verifies', async () => {
      for (const subject of ['a', 'b', 'c', 'd', 'e']) {
        await append(subject);
        await at.clock.advance(1_000);
      }
      const { rows } = await at.store.auditChain({ afterId: 0, limit: 9 });
      const before = at.clock.now() - 2_000; // d and e are from then on
      expect(await at.store.pruneAudit({ before, limit: 2 })).toBe(2);
      expect(await at.store.pruneAudit({ before, limit: 2 })).toBe(1);
      expect(await at.store.pruneAudit({ before, limit: 2 })).toBe(0);
      expect(await subjects()).toEqual(['d', 'e']);
      expect(await verifyAudit({ store: at.store }, { notedHead: rows[3]?.hash })).toMatchObject({
        rows: 2,
        anchor: { id: 3, hash: rows[2]?.hash },
        breakCount: 0,
        hasNotedHead: true,
      });
    });

    test('can remove everything, and the chain goes on from there', async () => {
      for (const subject of ['a', 'b']) await append(subject);
      await at.clock.advance(1);
      expect(await at.store.pruneAudit({ before: at.clock.now(), limit: 9 })).toBe(2);
      expect(await verifyAudit({ store: at.store })).toMatchObject({ rows: 0, head: { id: 2 }, breakCount: 0 });
      await append('c');
      expect(await verifyAudit({ store: at.other })).toMatchObject({ rows: 1, head: { id: 3 }, breakCount: 0 });
    });

    test('stops at the first event that is not old enough, whatever the clock said of later ones', async () => {
      await append('a');
      at.clock.setWallClock(at.clock.now() - 5_000);
      await append('b');
      expect(await at.store.pruneAudit({ before: at.clock.now() + 1_000, limit: 9 })).toBe(0);
      expect(await subjects()).toEqual(['a', 'b']);
    });
  });
}
