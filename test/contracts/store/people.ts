import { beforeEach, describe, expect, test } from 'vitest';
import { judgeErasure, judgeForgetting } from '../../../src/core/forgetting.ts';
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

    test('removes the id, names and free text from every change that names the person, and from no other change', async () => {
      const other = await at.store.findChange('chg_other');
      expect(await forget()).toEqual({ changes: 2, events: 1, isOpen: false, isNamed: true });
      expect(await at.other.findChange('chg_rankee')).toMatchObject({ rankeeId: -77, rankeeName: '' });
      expect(await at.other.findChange('chg_ranker')).toMatchObject({ rankeeId: 2002, rankerId: -77, rankerName: '' });
      const remaining = JSON.stringify(await at.other.listChanges({ limit: 10 }));
      for (const trace of ['1001', 'Newcomer', 'ffff']) expect(remaining).not.toContain(trace);
      expect(await at.other.findChange('chg_other')).toStrictEqual(other);
      expect(await at.other.mentionsOf(1001)).toEqual({ changes: 0, events: 0, isOpen: false, isNamed: false });
    });

    test('is rejected the second time, and nothing is written', async () => {
      await forget();
      const { length } = await at.store.listAudit({ limit: 10 });
      await expect(forget()).rejects.toMatchObject({ code: 'not_found' });
      expect(await at.store.listAudit({ limit: 10 })).toHaveLength(length);
    });

    test('writes the pseudonym into the audit, whose chain stays intact, and is itself audited', async () => {
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

    test.each([
      { role: 'member', rankeeId: 1001, rankerId: 3003 },
      { role: 'ranker', rankeeId: 3003, rankerId: 1001 },
    ])(
      'is rejected while a change with the person as $role is open, and nothing is written',
      async ({ role: _, ...people }) => {
        const open = newChange({ id: 'chg_open', ...people, state: 'pending' });
        await at.other.beginChange(open, { windows: [] }, () => ({ do: 'begin', holds: [], events: [] }));
        await expect(forget()).rejects.toMatchObject({ code: 'conflict' });
        expect(await at.store.mentionsOf(1001)).toEqual({ changes: 3, events: 1, isOpen: true, isNamed: true });
      },
    );
  });

  describe('erasure requests', () => {
    const ask = (id: string, userId: number, receivedAt = at.clock.now()) => {
      const request = { id, userId, requestedAt: 5, receivedAt };
      return at.store.recordErasure(request, judgeErasure(request, { by: 'roblox', at: receivedAt, pseudonym: -88 }));
    };

    test('are stored once per notification, and completed in the transaction that forgets the person', async () => {
      await record(at.store, newChange({ id: 'chg_1', rankeeId: 1001, state: 'applied', finishedAt: at.clock.now() }));
      await ask('b', 1001, 20);
      await ask('a', 1001, 10);
      expect(await ask('a', 1001, 30)).toEqual({ id: 'a', userId: 1001, requestedAt: 5, receivedAt: 10 });
      expect((await at.other.waitingErasures()).map(({ id }) => id)).toEqual(['a', 'b']);
      expect((await at.store.mentionsOf(1001)).events).toBe(3);
      await forget();
      expect(await at.other.waitingErasures()).toEqual([]);
      expect(await ask('a', 1001)).toMatchObject({ id: 'a', userId: -77, doneAt: at.clock.now() });
      expect((await verifyAudit({ store: at.other })).isIntact).toBe(true);
    });

    test('about a user without records are completed at once, without storing the user id', async () => {
      expect(await ask('a', 1001)).toMatchObject({ userId: -88, doneAt: at.clock.now() });
      expect(await at.other.waitingErasures()).toEqual([]);
      const events = await at.other.listAudit({ limit: 10, oldestFirst: true });
      expect(events).toMatchObject([{ action: 'person.request', subject: 'a', detail: { isKnown: false } }]);
      await at.store.storeUserName({ id: 1001, name: 'Newcomer', at: 100 }, { since: 0 });
      expect(await ask('b', 1001)).toMatchObject({ userId: 1001 });
    });
  });

  describe('names from the platform', () => {
    test('are reported as missing for unnamed members of recent changes until they are stored, and expire', async () => {
      const ended = { state: 'applied', finishedAt: at.clock.now() } as const;
      await record(at.store, newChange({ ...ended, id: 'chg_1', rankeeId: 1001, rankeeName: '' }));
      await record(at.store, newChange({ ...ended, id: 'chg_2', rankeeId: 1002, rankeeName: '' }));
      await record(at.store, newChange({ ...ended, id: 'chg_3', rankeeId: 1003, rankeeName: 'Named' }));
      const unnamed = async (since: number, limit = 10) =>
        (await at.other.unnamedMembers({ since, limit })).sort((one, other) => one - other);
      expect(await unnamed(0)).toEqual([1001, 1002]);
      expect(await unnamed(0, 2)).toEqual([1002]);
      await at.store.storeUserName({ id: 1001, name: 'Newcomer', at: 100 }, { since: 0 });
      await at.store.storeUserName({ id: 1002, name: undefined, at: 200 }, { since: 0 });
      expect(await unnamed(100)).toEqual([]);
      expect(await unnamed(101)).toEqual([1001]);
      const names = async (since: number) => [...(await at.other.userNames([1001, 1002, 1003], { since }))];
      expect(await names(100)).toEqual([[1001, 'Newcomer']]);
      expect(await names(101)).toEqual([]);
      await at.store.storeUserName({ id: 1003, name: 'Other', at: 300 }, { since: 101 });
      expect(await names(0)).toEqual([[1003, 'Other']]);
    });

    test('find the users who had them, ignoring case, in order of their newest changes', async () => {
      const ended = { state: 'applied', finishedAt: at.clock.now() } as const;
      for (const [index, rankeeId] of [1001, 1002, 1001, 1003].entries()) {
        const rankeeName = rankeeId === 1003 ? 'Sam_' : 'sAm';
        await record(at.store, newChange({ ...ended, id: `chg_${index}`, rankeeId, rankeeName }));
      }
      await at.store.storeUserName({ id: 1004, name: 'Sam', at: 100 }, { since: 0 });
      expect(await at.other.usersNamed('SAM', { limit: 9 })).toEqual([1001, 1002, 1004]);
      expect(await at.other.usersNamed('SAM', { limit: 1 })).toEqual([1001]);
      expect(await at.other.usersNamed('sa', { limit: 9 })).toEqual([]);
      await forget();
      expect(await at.other.usersNamed('SAM', { limit: 9 })).toEqual([1002, 1004]);
    });

    test('are deleted with a forgotten person', async () => {
      const ended = { state: 'applied', finishedAt: at.clock.now() } as const;
      await record(at.store, newChange({ ...ended, id: 'chg_1', rankeeId: 1001, rankeeName: '' }));
      await at.store.storeUserName({ id: 1001, name: 'Newcomer', at: 100 }, { since: 0 });
      await forget();
      expect(await at.other.userNames([1001], { since: 0 })).toEqual(new Map());
      expect(await at.other.unnamedMembers({ since: 0, limit: 10 })).toEqual([]);
    });
  });
}
