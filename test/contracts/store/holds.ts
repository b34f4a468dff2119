import { describe, expect, test } from 'vitest';
import { judgeForgetting } from '../../../src/core/forgetting.ts';
import { extended } from '../../../src/core/holds.ts';
import type { Hold, RankChange } from '../../../src/core/model.ts';
import { recordOutcome } from '../../../src/usecases/change/change-record.ts';
import { applied, begin, newChange, operator, refused } from './samples.ts';
import type { StoreCase } from './store-case.ts';

const group = 'the simulated group';

/** Returns a change that suspends member 7 until `endsAt`. */
function newSuspension(id: string, endsAt: number, rest: Partial<RankChange> = {}): RankChange {
  return newChange({ hold: { does: 'begin', id, kind: 'suspension', endsAt }, reason: 'spam', ...rest });
}

function newReturn(id: string, rest: Partial<RankChange> = {}): RankChange {
  return newChange({
    hold: { does: 'return', id, as: 'ended' },
    rolesBefore: [100, 300],
    rolesAfter: [100, 200],
    ...rest,
  });
}

export function holdContract(at: StoreCase): void {
  const holds = async () => (await at.other.listHolds({ group, limit: 9 })).map(({ id, state }) => [id, state]);

  describe('a hold', () => {
    test('begins only with the outcome of its change, with the roles from that outcome', async () => {
      const change = newSuspension('hold_a', 5_000);
      await begin(at.store, change);
      expect(await holds()).toEqual([]);
      await recordOutcome(at, change.id, applied);
      expect(await at.other.findHold('hold_a')).toStrictEqual({
        ...{ id: 'hold_a', group, kind: 'suspension', state: 'active', rankeeId: 7, rankeeName: 'Builder' },
        ...{ rolesBefore: [100, 200], rolesDuring: [100, 300], changeId: change.id, rankerId: 0, rankerName: 'Server' },
        ...{ reason: 'spam', by: 'key:key_main', keyId: 'key_main', placeId: 42, beginsAt: change.requestedAt },
        ...{ endsAt: 5_000, tries: 0, message: '' },
      } satisfies Hold);
      const [event] = await at.other.listAudit({ action: 'suspension', limit: 1 });
      expect(event).toMatchObject({
        action: 'suspension.begin',
        subject: 'hold_a',
        detail: { rankeeId: 7, changeId: change.id },
      });
    });

    test('does not exist if its change was refused', async () => {
      const change = newSuspension('hold_a', 5_000);
      await begin(at.store, change);
      await recordOutcome(at, change.id, refused);
      expect(await holds()).toEqual([]);
    });

    test('prevents other changes to the member, in the transaction that would begin the change', async () => {
      const change = newSuspension('hold_a', 5_000);
      await begin(at.store, change);
      await recordOutcome(at, change.id, applied);
      const after = change.id;
      await expect(begin(at.other, newChange(), { after })).rejects.toMatchObject({ code: 'member_suspended' });
      await expect(begin(at.other, newSuspension('hold_b', 9_000), { after })).rejects.toMatchObject({
        code: 'already_suspended',
      });
      expect(await begin(at.other, newReturn('hold_a'), { after })).toBe(true);
      expect(await holds()).toEqual([['hold_a', 'ending']]);
    });

    test('ends if its return is applied, and stays open if it is not', async () => {
      const change = newSuspension('hold_a', at.clock.now());
      await begin(at.store, change);
      await recordOutcome(at, change.id, applied);
      const first = newReturn('hold_a');
      await begin(at.store, first, { after: change.id });
      await recordOutcome(at, first.id, { ...refused, code: 'platform_unavailable', state: 'failed' });
      expect(await at.other.findHold('hold_a')).toMatchObject({
        state: 'active',
        tries: 1,
        code: 'platform_unavailable',
      });
      const second = newReturn('hold_a');
      await begin(at.store, second, { after: first.id });
      await recordOutcome(at, second.id, { ...applied, rolesAfter: [100, 200] });
      expect(await at.other.findHold('hold_a')).toMatchObject({ state: 'ended', returnChangeId: second.id });
      expect(await begin(at.other, newChange(), { after: second.id })).toBe(true);
    });

    test('is due from its end, earliest end first, only in its own group, and waits between two attempts', async () => {
      for (const [rankeeId, endsAt] of [
        [1, 3_000],
        [2, 1_000],
        [3, 9_000],
      ] as const) {
        const change = newSuspension(`hold_${rankeeId}`, endsAt, { rankeeId });
        await begin(at.store, change);
        await recordOutcome(at, change.id, applied);
      }
      const due = async (now: number, retryNow = false) =>
        (await at.other.dueHolds({ group, now, retryNow, limit: 9 })).map(({ id }) => id);
      expect(await due(3_000)).toEqual(['hold_2', 'hold_1']);
      await at.store.updateHold('hold_2', (hold) => ({ holds: [{ ...hold, nextTryAt: 8_000 }], events: [] }));
      expect(await due(3_000)).toEqual(['hold_1']);
      expect(await due(3_000, true)).toEqual(['hold_2', 'hold_1']);
      expect(await at.other.dueHolds({ group: 'another', now: 9_999, retryNow: true, limit: 9 })).toEqual([]);
    });

    test('is updated together with its events, but not once it has ended', async () => {
      const change = newSuspension('hold_a', 5_000);
      await begin(at.store, change);
      await recordOutcome(at, change.id, applied);
      const actor = { by: operator, at: at.clock.now() };
      expect(await at.store.updateHold('hold_a', (hold) => extended(hold, 9_000, actor))).toMatchObject({
        endsAt: 9_000,
      });
      expect(await at.other.listAudit({ action: 'suspension.extend', limit: 9 })).toHaveLength(1);
      await at.store.updateHold('hold_a', (hold) => ({ holds: [{ ...hold, state: 'superseded' }], events: [] }));
      expect(await at.store.updateHold('hold_a', (hold) => extended(hold, 1, actor))).toBeUndefined();
      expect(await at.other.findHold('hold_a')).toMatchObject({ endsAt: 9_000, state: 'superseded' });
    });

    test('is deleted with its change once that is too old, unless it is in force', async () => {
      for (const rankeeId of [1, 2]) {
        const change = newSuspension(`hold_${rankeeId}`, 5_000, { rankeeId });
        await begin(at.store, change);
        await recordOutcome(at, change.id, applied);
      }
      await at.store.updateHold('hold_1', (hold) => ({
        holds: [{ ...hold, state: 'forfeited', endedAt: 5_000 }],
        events: [],
      }));
      await at.clock.advance(1);
      await at.store.pruneChanges({ before: at.clock.now(), limit: 9 });
      expect(await holds()).toEqual([['hold_2', 'active']]);
    });

    test('of a forgotten person loses the id, name and reason, and restores no roles', async () => {
      const change = newSuspension('hold_a', 5_000);
      await begin(at.store, change);
      await recordOutcome(at, change.id, applied);
      const forgetting = { userId: 7, pseudonym: -77 };
      await at.store.forgetPerson(forgetting, judgeForgetting(forgetting, { by: operator, at: at.clock.now() }));
      const left = await at.other.findHold('hold_a');
      expect(left).toMatchObject({ rankeeId: -77, rankeeName: '', state: 'forfeited' });
      expect(JSON.stringify(left)).not.toContain('spam');
    });
  });
}
