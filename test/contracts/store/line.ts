import { describe, expect, test } from 'vitest';
import type { StoreCase } from '../store-contract.ts';

const rankeeId = 7;
const lifeMs = 20_000;

export function lineContract(at: StoreCase): void {
  describe('the line of those who wait for a member', () => {
    test('lets an undisturbed change pass', async () => {
      const place = await at.store.endOfLine(rankeeId);
      expect(await at.store.isNext({ rankeeId, place, holder: 'a' })).toBe(true);
    });

    test('lets who came later wait for a ticket of another process until it is given back', async () => {
      const ticket = await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      const later = await at.other.endOfLine(rankeeId);
      expect(await at.other.isNext({ rankeeId, place: later, holder: 'b' })).toBe(false);
      await at.store.giveBack(ticket);
      expect(await at.other.isNext({ rankeeId, place: later, holder: 'b' })).toBe(true);
    });

    test('lets nobody wait for who came later, for its own process, or for another member', async () => {
      const earlier = await at.store.endOfLine(rankeeId);
      const first = await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      const second = await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      expect(await at.other.isNext({ rankeeId, place: earlier, holder: 'b' })).toBe(true);
      expect(await at.other.isNext({ rankeeId, place: first, holder: 'b' })).toBe(true);
      expect(await at.store.isNext({ rankeeId, place: second, holder: 'a' })).toBe(true);
      const elsewhere = await at.other.endOfLine(8);
      expect(await at.other.isNext({ rankeeId: 8, place: elsewhere, holder: 'b' })).toBe(true);
    });

    test('forgets a ticket that has expired, or that the clock was set back before', async () => {
      await at.store.takeTicket({ rankeeId, holder: 'a', lifeMs });
      const place = await at.other.endOfLine(rankeeId);
      const isNext = () => at.other.isNext({ rankeeId, place, holder: 'b' });
      expect(await isNext()).toBe(false);
      at.clock.setWallClock(at.clock.now() + lifeMs + 1);
      expect(await isNext()).toBe(true);
      at.clock.setWallClock(at.clock.now() - 3_600_000);
      expect(await isNext()).toBe(true);
    });

    test('forgets the tickets of the holders that are named, and no others', async () => {
      await at.store.takeTicket({ rankeeId, holder: 'daemon_1', lifeMs });
      await at.store.forgetTickets('daemon_');
      const place = await at.other.endOfLine(rankeeId);
      expect(await at.other.isNext({ rankeeId, place, holder: 'b' })).toBe(true);
      await at.store.takeTicket({ rankeeId, holder: 'cli_1', lifeMs });
      await at.store.forgetTickets('daemon_');
      const after = await at.other.endOfLine(rankeeId);
      expect(await at.other.isNext({ rankeeId, place: after, holder: 'b' })).toBe(false);
    });
  });
}
