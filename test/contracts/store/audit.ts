import { describe, expect, test } from 'vitest';
import type { StoreCase } from '../store-contract.ts';
import { awkwardText } from './samples.ts';

export function auditContract(at: StoreCase): void {
  const append = (subject: string) =>
    at.store.appendAudit({ by: 'daemon', action: 'caller.refused', subject, detail: { text: awkwardText, count: 3 } });

  describe('audit', () => {
    test('an event comes back as it was written, with its number and moment', async () => {
      await append('a');
      expect(await at.other.listAudit({ limit: 9 })).toStrictEqual([
        {
          id: expect.any(Number),
          at: at.clock.now(),
          by: 'daemon',
          action: 'caller.refused',
          subject: 'a',
          detail: { text: awkwardText, count: 3 },
        },
      ]);
    });

    test('is listed newest first, from a moment or after an event on, up to the limit', async () => {
      await append('a');
      await at.clock.advance(1_000);
      await append('b');
      await append('c');
      const list = (filter: object) => at.store.listAudit({ limit: 9, ...filter });
      const subjects = async (filter: object) => (await list(filter)).map(({ subject }) => subject);
      expect(await subjects({})).toEqual(['c', 'b', 'a']);
      expect(await subjects({ limit: 2 })).toEqual(['c', 'b']);
      expect(await subjects({ since: at.clock.now() })).toEqual(['c', 'b']);
      const [, b] = await list({});
      expect(await subjects({ afterId: b?.id })).toEqual(['c']);
      expect(await subjects({ afterId: b?.id, since: at.clock.now() + 1 })).toEqual([]);
    });
  });
}
