import { describe, expect, test } from 'vitest';
import { awkwardText, largestId, newKey, operate, operator } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function whitelistContract(at: StoreCase): void {
  const keyId = 'key_main';

  describe('the whitelist', () => {
    test('entries are added together, and the result shows which of them are new', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).addEntries({ keyId, placeIds: [42] }, operator);
      const entries = await operate(at).addEntries(
        { keyId, placeIds: [largestId, 42, 42], note: awkwardText },
        operator,
      );
      const addedAt = at.clock.now();
      expect(entries).toStrictEqual([
        { keyId, placeId: largestId, active: true, note: awkwardText, addedAt, added: true },
        { keyId, placeId: 42, active: true, note: awkwardText, addedAt, added: false },
      ]);
    });

    test('adding an entry again enables it, and retains its note and the time it was first added', async () => {
      await operate(at).createKey(newKey('main'), operator);
      const [first] = await operate(at).addEntries({ keyId, placeIds: [42], note: 'lobby' }, operator);
      await operate(at).setEntriesActive({ keyId, placeIds: [42], active: false }, operator);
      await at.clock.advance(1_000);
      const [again] = await operate({ ...at, store: at.other }).addEntries({ keyId, placeIds: [42] }, operator);
      expect(again).toStrictEqual({ ...first, added: false });
    });

    test('is listed by place, for one key or for all', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).createKey(newKey('other'), operator);
      await operate(at).addEntries({ keyId, placeIds: [30, 4] }, operator);
      await operate(at).addEntries({ keyId: 'key_other', placeIds: [100, 7] }, operator);
      const places = async (filter: { keyId?: string }) =>
        (await at.store.listEntries(filter)).map((entry) => entry.placeId);
      expect(await places({})).toEqual([4, 7, 30, 100]);
      expect(await places({ keyId })).toEqual([4, 30]);
      expect(await places({ keyId: 'key_no' })).toEqual([]);
    });

    test('entries are disabled, enabled and removed, and each result shows them', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).addEntries({ keyId, placeIds: [1, 2] }, operator);
      const off = await operate(at).setEntriesActive({ keyId, placeIds: [2], active: false }, operator);
      expect(off).toMatchObject([{ placeId: 2, active: false }]);
      expect(await at.other.listEntries({})).toMatchObject([{ active: true }, { active: false }]);
      const on = await operate(at).setEntriesActive({ keyId, placeIds: [2], active: true }, operator);
      expect(on).toMatchObject([{ placeId: 2, active: true }]);
      const removed = await operate(at).removeEntries({ keyId, placeIds: [1] }, operator);
      expect(removed).toMatchObject([{ placeId: 1 }]);
      expect(await at.other.listEntries({})).toMatchObject([{ placeId: 2 }]);
    });

    test('if places are not listed, nothing changes, and the error names them', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).addEntries({ keyId, placeIds: [1, 2] }, operator);
      const events = await at.store.listAudit({ limit: 10 });
      const missing = { code: 'not_found', message: expect.stringContaining('Places 77, 88 are not') };
      const input = { keyId, placeIds: [1, 77, 2, 88] };
      await expect(operate(at).setEntriesActive({ ...input, active: false }, operator)).rejects.toMatchObject(missing);
      await expect(operate(at).removeEntries(input, operator)).rejects.toMatchObject(missing);
      expect(await at.store.listEntries({})).toMatchObject([{ active: true }, { active: true }]);
      expect(await at.store.listAudit({ limit: 10 })).toEqual(events);
    });

    test('adding entries to a missing key fails with not_found', async () => {
      const adding = operate(at).addEntries({ keyId: 'key_no', placeIds: [1] }, operator);
      await expect(adding).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('key_no') });
    });

    test('the audit records one event for each place', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).addEntries({ keyId, placeIds: [1, 2], note: 'n' }, operator);
      await operate(at).setEntriesActive({ keyId, placeIds: [1], active: false }, operator);
      await operate(at).setEntriesActive({ keyId, placeIds: [1], active: true }, operator);
      await operate(at).removeEntries({ keyId, placeIds: [2] }, operator);
      const events = (await at.store.listAudit({ limit: 5 })).reverse();
      expect(events.every((event) => event.by === operator && event.detail['keyId'] === keyId)).toBe(true);
      expect(events.map(({ action, subject }) => [action, subject])).toEqual([
        ['whitelist.add', '1'],
        ['whitelist.add', '2'],
        ['whitelist.disable', '1'],
        ['whitelist.enable', '1'],
        ['whitelist.remove', '2'],
      ]);
    });
  });
}
