import { describe, expect, test } from 'vitest';
import type { StoreCase } from './store-case.ts';

const rankeeId = 7;
const lifeMs = 20_000;

export function lineContract(at: StoreCase): void {
  describe('the line of those who wait for a member', () => {
    test('lets an undisturbed change pass', async () => {
      expect(await at.store.lookAhead({ rankeeId, holder: 'a' })).toMatchObject({ isNext: true });
    });

    test('lets who came later wait for tickets of other processes until each of them is given back', async () => {
      const first = await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      await at.other.takeTicket({ rankeeId, holder: 'b', lifeMs });
      const second = await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      const { place, isNext } = await at.other.lookAhead({ rankeeId, holder: 'b' });
      expect(isNext).toBe(false);
      await at.store.giveBack(first);
      expect(await at.other.lookAhead({ rankeeId, holder: 'b', place })).toStrictEqual({ place, isNext: false });
      await at.store.giveBack(second);
      expect(await at.other.lookAhead({ rankeeId, holder: 'b', place })).toStrictEqual({ place, isNext: true });
    });

    test('lets nobody wait for who came later, for its own process, or for another member', async () => {
      const { place: earlier } = await at.other.lookAhead({ rankeeId, holder: 'b' });
      const first = await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      const second = await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      const isNext = async (query: { rankeeId: number; holder: string; place?: number }) =>
        (await at.other.lookAhead(query)).isNext;
      expect(await isNext({ rankeeId, place: earlier, holder: 'b' })).toBe(true);
      expect(await isNext({ rankeeId, place: first, holder: 'b' })).toBe(true);
      expect(await isNext({ rankeeId, place: second, holder: 'b' })).toBe(false);
      expect(await isNext({ rankeeId, place: second, holder: 'a' })).toBe(true);
      expect(await isNext({ rankeeId: 8, holder: 'b' })).toBe(true);
    });

    test('forgets a ticket that has expired, or that the clock was set back before', async () => {
      await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      const isNext = async () => (await at.other.lookAhead({ rankeeId, holder: 'b' })).isNext;
      expect(await isNext()).toBe(false);
      at.clock.setWallClock(at.clock.now() + lifeMs + 1);
      expect(await isNext()).toBe(true);
      at.clock.setWallClock(at.clock.now() - 3_600_000);
      expect(await isNext()).toBe(true);
    });

    test('forgets the tickets of the holders that are named, and no others', async () => {
      const isNext = async () => (await at.other.lookAhead({ rankeeId, holder: 'b' })).isNext;
      await at.store.takeTicket({ rankeeId, holder: 'daemon_1', lifeMs });
      await at.store.forgetTickets('daemon_');
      expect(await isNext()).toBe(true);
      await at.store.takeTicket({ rankeeId, holder: 'cli_1', lifeMs });
      await at.store.forgetTickets('daemon_');
      expect(await isNext()).toBe(false);
    });
  });
}
