import { beforeEach, describe, expect, test } from 'vitest';
import { judgeForgetting } from '../../../src/core/forgetting.ts';
import { verifyAudit } from '../../../src/usecases/history/verify-audit.ts';
import { newChange, record } from './samples.ts';
import type { StoreCase } from './store-case.ts';

const operator = 'cli:ann@host';
const forgetting = { userId: 1001, pseudonym: -77 };

export function personContract(at: StoreCase): void {
  const forget = () =>
    at.store.forgetPerson(forgetting, judgeForgetting(forgetting, { by: operator, at: at.clock.now() }));

  describe('forgetting a person', () => {
    beforeEach(async () => {
      const names = {
        rankeeName: 'Newcomer',
        command: '!rank Newcomer',
        reason: 'Newcomer passed',
        fingerprint: 'f'.repeat(64),
      };
      const ended = { state: 'applied', finishedAt: at.clock.now() } as const;
      await record(at.store, newChange({ ...ended, id: 'chg_rankee', rankeeId: 1001, ...names }));
      await record(
        at.store,
        newChange({ ...ended, id: 'chg_ranker', rankeeId: 2002, rankerId: 1001, rankerName: 'Newcomer' }),
      );
      await record(at.store, newChange({ ...ended, id: 'chg_other', rankeeId: 2002, rankeeName: 'Other' }));
    });

    test('takes the id, the names and the texts out of every change that names the person, and out of no other', async () => {
      const other = await at.store.findChange('chg_other');
      expect(await forget()).toEqual({ changes: 2, events: 1, isOpen: false });
      expect(await at.other.findChange('chg_rankee')).toMatchObject({ rankeeId: -77, rankeeName: '' });
      expect(await at.other.findChange('chg_ranker')).toMatchObject({ rankeeId: 2002, rankerId: -77, rankerName: '' });
      const kept = JSON.stringify(await at.other.listChanges({ limit: 10 }));
      for (const trace of ['1001', 'Newcomer', 'ffff']) expect(kept).not.toContain(trace);
      expect(await at.other.findChange('chg_other')).toStrictEqual(other);
      expect(await at.other.mentionsOf(1001)).toEqual({ changes: 0, events: 0, isOpen: false });
    });

    test('puts the pseudonym into the audit, whose chain is whole, and is itself an event', async () => {
      const before = await verifyAudit({ store: at.store });
      await forget();
      const events = await at.other.listAudit({ limit: 10, oldestFirst: true });
      expect(events.map(({ detail }) => detail['rankeeId'])).toEqual([-77, 2002, 2002, undefined]);
      expect(events.at(-1)).toMatchObject({
        ...{ action: 'person.forget', subject: '-77', by: operator },
        detail: { changes: 2, events: 1 },
      });
      const { isIntact, notedHead } = await verifyAudit({ store: at.other }, { notedHead: before.head.hash });
      expect({ isIntact, notedHead }).toEqual({ isIntact: true, notedHead: 'found' });
    });

    test('is refused while a change of the member is open, with nothing written', async () => {
      await at.other.beginChange(
        newChange({ id: 'chg_open', rankeeId: 1001, state: 'pending' }),
        { windows: [] },
        () => ({
          do: 'begin',
          events: [],
        }),
      );
      await expect(forget()).rejects.toMatchObject({ code: 'conflict' });
      expect(await at.store.mentionsOf(1001)).toEqual({ changes: 3, events: 1, isOpen: true });
    });
  });
}
