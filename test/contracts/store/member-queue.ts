import { describe, expect, test } from 'vitest';
import type { StoreCase } from './store-case.ts';

const rankeeId = 7;

export function memberQueueContract(at: StoreCase): void {
  describe('the queue of changes that wait for a member', () => {
    test('admits a change without competitors', async () => {
      expect(await at.store.queueState({ rankeeId })).toMatchObject({ isNext: true });
    });

    test('makes a change wait for all earlier ones from other nodes', async () => {
      const first = await at.store.enqueue(rankeeId);
      await at.other.enqueue(rankeeId);
      const second = await at.store.enqueue(rankeeId);
      const { position, isNext } = await at.other.queueState({ rankeeId });
      expect(isNext).toBe(false);
      await at.store.leave(first);
      expect(await at.other.queueState({ rankeeId, position })).toStrictEqual({ position, isNext: false });
      await at.store.leave(second);
      expect(await at.other.queueState({ rankeeId, position })).toStrictEqual({ position, isNext: true });
    });

    test('makes no change wait for later ones, for its own node, or for changes to other members', async () => {
      const { position: earlier } = await at.other.queueState({ rankeeId });
      const first = await at.store.enqueue(rankeeId);
      const second = await at.store.enqueue(rankeeId);
      const isNext = async (query: { rankeeId: number; position?: string }) =>
        (await at.other.queueState(query)).isNext;
      expect(await isNext({ rankeeId, position: earlier })).toBe(true);
      expect(await isNext({ rankeeId, position: first })).toBe(true);
      expect(await isNext({ rankeeId, position: second })).toBe(false);
      expect((await at.store.queueState({ rankeeId, position: second })).isNext).toBe(true);
      expect(await isNext({ rankeeId: 8 })).toBe(true);
    });

    test('makes changes wait for a live node whatever the clocks show, but not for a dead one', async () => {
      await at.store.enqueue(rankeeId);
      const isNext = async () => (await at.other.queueState({ rankeeId })).isNext;
      for (const hours of [1, -2]) {
        at.clock.setWallClock(at.clock.now() + hours * 3_600_000);
        expect(await isNext()).toBe(false);
      }
      await at.store.close();
      expect(await isNext()).toBe(true);
    });
  });
}
