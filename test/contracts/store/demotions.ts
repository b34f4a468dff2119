import { beforeEach, describe, expect, test } from 'vitest';
import type { RankChange } from '../../../src/core/model.ts';
import type { StoreCase } from '../store-contract.ts';
import { newChange, newDemotion, newKey, operator, refused, unknown } from './samples.ts';

export function demotionContract(at: StoreCase): void {
  const since = Date.UTC(2026, 0, 1);
  const limit = { since, byKey: 2, byAll: 3 };
  const begin = async (change: RankChange) => {
    const { latestId } = await at.store.latestChange(change.rankeeId);
    return at.store.beginChange(change, { after: latestId, demotions: limit });
  };
  const isPaused = async (keyId: string) => (await at.other.findKey(keyId))?.pausedAt !== undefined;

  describe('the limit of demotions', () => {
    beforeEach(async () => {
      await at.store.createKey(newKey('main'), operator);
      await at.store.createKey(newKey('other'), operator);
    });

    test('a demotion beyond it is not begun and pauses the key, with an event that says why', async () => {
      expect(await begin(newDemotion(1))).toBe(true);
      expect(await begin(newDemotion(2))).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
      const third = newDemotion(3);
      await expect(begin(third)).rejects.toMatchObject({ name: 'RankdError', code: 'key_paused' });
      expect(await isPaused('key_main')).toBe(true);
      expect(await isPaused('key_other')).toBe(false);
      expect(await at.store.findChange(third.id)).toBeUndefined();
      expect(await at.store.listAudit({ limit: 1 })).toMatchObject([
        {
          action: 'key.pause',
          by: 'daemon',
          subject: 'key_main',
          detail: { reason: expect.stringContaining('more than 2') },
        },
      ]);
    });

    test('all keys together have one of their own', async () => {
      await begin(newDemotion(1));
      await begin(newDemotion(2));
      expect(await begin(newDemotion(3, { keyId: 'key_other' }))).toBe(true);
      await expect(begin(newDemotion(4, { keyId: 'key_other' }))).rejects.toMatchObject({ code: 'key_paused' });
      expect(await isPaused('key_other')).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
    });

    test('counts members, not changes: the same member can go down step by step', async () => {
      for (let step = 0; step < 5; step += 1) {
        const change = newDemotion(1);
        expect(await begin(change)).toBe(true);
        await at.store.finishChange(change.id, { state: 'applied', code: null, message: '' });
      }
      const other = newDemotion(2);
      await begin(other);
      await at.store.finishChange(other.id, { state: 'applied', code: null, message: '' });
      expect(await begin(newDemotion(2))).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
    });

    test('open ones count, also unknown; refused, dry, quiet and older ones and promotions do not', async () => {
      await at.store.recordChange(newDemotion(1, { state: 'refused' }));
      await at.store.recordChange(newDemotion(2, { state: 'applied', dryRun: true }));
      await at.store.recordChange(newDemotion(3, { state: 'applied', rolesAfter: [100, 200] }));
      await at.store.recordChange(newDemotion(4, { state: 'applied', requestedAt: since - 1 }));
      await at.store.recordChange(newChange({ rankeeId: 5, state: 'applied' }));
      const [unsettled, open] = [newDemotion(6), newDemotion(7)];
      expect(await begin(unsettled)).toBe(true);
      await at.store.finishChange(unsettled.id, unknown);
      expect(await begin(open)).toBe(true);
      await expect(begin(newDemotion(8))).rejects.toMatchObject({ code: 'key_paused' });
      await at.store.finishChange(open.id, refused);
      expect(await begin(newDemotion(8))).toBe(true);
    });

    test('promotions pass when it is used up, and so does everything where no limit is given', async () => {
      await begin(newDemotion(1));
      await begin(newDemotion(2));
      expect(await begin(newChange({ rankeeId: 3 }))).toBe(true);
      expect(await at.store.beginChange(newDemotion(4), { after: undefined })).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
    });

    test('demotions side by side, from two handles, do not slip past it together', async () => {
      const attempts = [1, 2, 3, 4, 5, 6].map((rankeeId, index) =>
        (index % 2 ? at.store : at.other).beginChange(newDemotion(rankeeId), { after: undefined, demotions: limit }),
      );
      const results = await Promise.allSettled(attempts);
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
      expect(await at.store.openChanges()).toHaveLength(2);
    });
  });
}
