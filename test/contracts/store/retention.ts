import { describe, expect, test } from 'vitest';
import { chainStart } from '../../../src/core/audit.ts';
import { auditPruned } from '../../../src/core/events.ts';
import { verifyAudit } from '../../../src/usecases/history/verify-audit.ts';
import { applied, begin, finish, newChange, operate, record, unknown } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function retentionContract(at: StoreCase): void {
  const append = (subject: string) => operate(at).appendAudit({ by: 'daemon', action: 'x', subject, detail: {} });

  describe('retention of changes', () => {
    const left = async () => (await at.other.listChanges({ limit: 99 })).map(({ rankeeId }) => rankeeId).reverse();

    test('removes changes that ended before the given time, oldest first, in steps with a cursor', async () => {
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

    test('never removes an open change, or one that ended at or after the given time', async () => {
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

    test('removes older changes even behind one that a wrong clock dated later', async () => {
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

    /** Appends an event that announces the removal, then removes at most `limit` events with ids up to `upToId`. */
    const pruneUpTo = async (upToId: number, limit: number) => {
      const { rows } = await at.store.auditChain({ afterId: upToId - 1, limit: 1 });
      const [upTo = chainStart] = rows;
      const actor = { by: 'daemon', at: at.clock.now() };
      await at.store.appendAudit(auditPruned({ removed: 1, before: 0, upTo }, actor));
      return at.store.pruneAudit({ upToId, limit });
    };

    test('removes the beginning of the chain up to an event, in steps, and the rest still verifies', async () => {
      for (const subject of ['a', 'b', 'c', 'd', 'e']) await append(subject);
      const { rows } = await at.store.auditChain({ afterId: 0, limit: 9 });
      expect(await pruneUpTo(3, 2)).toBe(2);
      expect(await verifyAudit({ store: at.store })).toMatchObject({ anchor: { id: 2 }, breakCount: 0 });
      expect(await at.store.pruneAudit({ upToId: 3, limit: 2 })).toBe(1);
      expect(await at.store.pruneAudit({ upToId: 3, limit: 2 })).toBe(0);
      expect(await subjects()).toEqual(['d', 'e', 'retention']);
      expect(await verifyAudit({ store: at.store }, { notedHead: rows[3]?.hash })).toMatchObject({
        rows: 3,
        anchor: { id: 3, hash: rows[2]?.hash },
        breakCount: 0,
        notedHead: 'found',
      });
    });

    test('can remove everything, and the chain continues from there', async () => {
      for (const subject of ['a', 'b']) await append(subject);
      expect(await at.store.pruneAudit({ upToId: 2, limit: 9 })).toBe(2);
      expect(await verifyAudit({ store: at.store })).toMatchObject({ rows: 0, head: { id: 2 } });
      await append('c');
      const breaks = [{ kind: 'unexplained', id: 1, toId: 2 }]; // no event announced the removal
      expect(await verifyAudit({ store: at.other })).toMatchObject({ rows: 1, head: { id: 3 }, breaks });
    });
  });
}
