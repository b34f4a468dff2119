import { describe, expect, test } from 'vitest';
import type { RankChange } from '../../../src/core/model.ts';
import type { ChangeFilter } from '../../../src/ports/index.ts';
import { newChange, operator, record } from './samples.ts';
import type { StoreCase } from './store-case.ts';

type Selection = Omit<ChangeFilter, 'limit'>;

export function searchContract(at: StoreCase): void {
  const recordAll = async (...changes: RankChange[]) => {
    for (const change of changes) await record(at.store, change);
    return changes.map(({ id }) => id);
  };
  /** Reads all pages of at most `limit` changes, and returns the ids. */
  const search = async (selection: Selection, limit = 2) => {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await at.other.searchChanges({ ...selection, limit, cursor });
      expect(page.changes.length).toBeLessThanOrEqual(limit);
      found.push(...page.changes.map(({ id }) => id));
      cursor = page.next;
    } while (cursor !== undefined);
    return found;
  };
  const list = async (selection: Selection) =>
    (await at.store.pageChanges({ ...selection, limit: 1_000 })).changes.map(({ id }) => id);

  describe('searching the history', () => {
    test('the pages of any search contain the same changes as a list, once each and in order', async () => {
      const states = ['applied', 'refused', 'failed', 'applied', 'applied'] as const;
      const { keyId: _key, placeId: _place, ...byHand } = newChange({ by: operator, state: 'applied' });
      for (let n = 0; n < 30; n += 1) {
        const rest = { rankeeName: `Member_${n % 7}`, state: states[n % 5] ?? 'applied', requestedAt: 1_000 + n };
        const who = { rankeeId: 100 + (n % 7), rankerId: n % 3, placeId: 40 + (n % 2), keyId: `key_${n % 4}` };
        await recordAll(newChange({ ...rest, ...who, ...(n % 6 === 0 && { undoId: 'undo_x' }) }));
      }
      await recordAll({ ...byHand, requestedAt: 1_100, rankeeName: '' });
      const selections: Selection[] = [
        {},
        { rankeeId: 103 },
        { rankeeName: 'member_' },
        { rankeeName: 'member_3', states: ['applied'] },
        { rankerId: 1 },
        { keyId: 'key_2', placeId: 40 },
        { placeId: 41, states: ['failed', 'refused'] },
        { states: ['refused', 'failed'] },
        { states: ['applied'] },
        { states: ['pending', 'unknown'] },
        { states: [] },
        { by: 'cli' },
        { by: operator },
        { by: 'key' },
        { by: 'nobody' },
        { undoId: 'undo_x' },
        { since: 1_005 },
        { until: 1_010 },
        { since: 1_005, until: 1_020, keyId: 'key_1' },
        { since: 1_005, rankeeName: 'Member_2' },
        { group: 'another group' },
      ];
      for (const selection of selections) {
        const wanted = await list(selection);
        expect(await search(selection), JSON.stringify(selection)).toEqual(wanted);
        expect(await search(selection, 100), JSON.stringify(selection)).toEqual(wanted);
      }
    });

    test('a member is found by the beginning of a given or stored name, ignoring case', async () => {
      const [first] = await recordAll(newChange({ rankeeId: 1, rankeeName: 'Foo_Bar', state: 'applied' }));
      const [, third] = await recordAll(
        newChange({ rankeeId: 2, rankeeName: 'FooXBar', state: 'applied' }),
        newChange({ rankeeId: 3, rankeeName: '', state: 'applied' }),
      );
      await at.store.storeUserName({ id: 3, name: 'foo_later', at: 5 }, { since: 0 });
      for (const rankeeName of ['foo_', 'FOO_']) {
        expect(await search({ rankeeName })).toEqual([third, first]);
        expect(await list({ rankeeName })).toEqual([third, first]);
      }
      expect(await search({ rankeeName: 'oo_' })).toEqual([]);
      expect(await list({ rankeeName: 'foo_bar_and_more' })).toEqual([]);
    });

    test('a search over many names and pages is complete even while new changes arrive', async () => {
      const changes = Array.from({ length: 40 }, (_, n) =>
        newChange({ rankeeId: n, rankeeName: `Ann${n}`, state: 'applied' }),
      );
      const ids = await recordAll(...changes);
      const first = await at.other.searchChanges({ rankeeName: 'ann', limit: 10 });
      await recordAll(newChange({ rankeeId: 99, rankeeName: 'Ann99', state: 'applied' }));
      const rest: string[] = [];
      let cursor = first.next;
      while (cursor !== undefined) {
        const page = await at.other.searchChanges({ rankeeName: 'ann', limit: 10, cursor });
        rest.push(...page.changes.map(({ id }) => id));
        cursor = page.next;
      }
      expect([...first.changes.map(({ id }) => id), ...rest]).toEqual(ids.toReversed());
    });

    test('a search by time is ordered by time with any other filter, even if the clock was set back', async () => {
      const times = [3_000, 1_000, 2_000, 1_000];
      const ids = await recordAll(
        ...times.map((requestedAt, n) => newChange({ rankeeId: n, requestedAt, state: 'applied', rankeeName: 'Ann' })),
      );
      const byTime = [ids[0], ids[2], ids[3], ids[1]];
      const keyId = newChange({}).keyId;
      for (const also of [{}, { keyId }, { rankeeName: 'ann' }, { by: 'key' }, { states: ['applied' as const] }])
        for (const time of [{ since: 1, until: 9_000 }, { since: 1 }, { until: 9_000 }]) {
          const selection = { ...also, ...time };
          for (const limit of [1, 3, 100])
            expect(await search(selection, limit), JSON.stringify(selection)).toEqual(byTime);
        }
      expect(await search({ rankeeName: 'ann' })).toEqual(ids.toReversed());
    });

    test('an invalid cursor returns an empty page', async () => {
      await recordAll(newChange({ state: 'applied' }));
      for (const cursor of ['x', '-1', "1' OR 1=1", 'nothing.1.1.1', '\u0000', '9'.repeat(400)])
        for (const since of [undefined, 0])
          expect(await at.other.searchChanges({ limit: 5, cursor, since })).toEqual({ changes: [] });
    });
  });

  describe('counting a period', () => {
    test('changes are counted by key, state, direction and effect, excluding dry runs and other groups', async () => {
      const {
        keyId: _key,
        placeId: _place,
        ...byHand
      } = newChange({ by: operator, state: 'applied', requestedAt: 1_500 });
      const one = (rest: Partial<RankChange>) => newChange({ state: 'applied', requestedAt: 1_000, ...rest });
      await recordAll(
        one({}),
        one({ requestedAt: 1_999 }),
        one({ demotion: true }),
        one({ state: 'refused', rolesAfter: [100, 200] }),
        one({ keyId: 'key_other' }),
        byHand,
        one({ requestedAt: 999 }),
        one({ requestedAt: 2_000 }),
        one({ dryRun: true }),
        one({ rolesAfter: [100, 200] }),
        one({ group: 'another group' }),
      );
      const tallies = await at.other.tallyChanges({ group: newChange().group, since: 1_000, until: 2_000 });
      const applied = { state: 'applied', demotion: false, isQuiet: false, count: 1 };
      expect(tallies).toHaveLength(6);
      expect(tallies).toEqual(
        expect.arrayContaining([
          { ...applied, keyId: 'key_main', count: 2 },
          { ...applied, keyId: 'key_main', demotion: true },
          { ...applied, keyId: 'key_main', state: 'refused' },
          { ...applied, keyId: 'key_other' },
          { ...applied, keyId: 'key_main', isQuiet: true },
          applied,
        ]),
      );
    });
  });
}
