import { beforeEach, describe, expect, test } from 'vitest';
import type { MemberLimit } from '../../../src/core/begin.ts';
import type { RankChange } from '../../../src/core/model.ts';
import type { Store } from '../../../src/ports/index.ts';
import {
  begin,
  finish,
  newChange,
  newDemotion,
  newKey,
  operate,
  operator,
  record,
  refused,
  unknown,
} from './samples.ts';
import type { StoreCase } from './store-case.ts';

async function addKeys(store: Store): Promise<void> {
  for (const name of ['main', 'other']) {
    const { id } = await operate({ store }).createKey(newKey(name), operator);
    await operate({ store }).addEntries({ keyId: id, placeIds: [42] }, operator);
  }
}

export function breakerContract(at: StoreCase): void {
  const since = Date.UTC(2026, 0, 1);
  const limit: MemberLimit = { of: 'demotions', since, byKey: 2, byAll: 3 };
  const beginHere = async (change: RankChange, limits = [limit]) => {
    const { latestId } = await at.store.latestChange(change.rankeeId);
    return begin(at.store, change, { after: latestId, limits });
  };
  const demoteWithin = (windowMs: number) => (rankeeId: number) => {
    const requestedAt = at.clock.now();
    return beginHere(newDemotion(rankeeId, { requestedAt }), [{ ...limit, since: requestedAt - windowMs }]);
  };
  const hourMs = 3_600_000;
  const isPaused = async (keyId: string) => (await at.other.findKey(keyId))?.pausedAt !== undefined;

  describe('the demotion limit', () => {
    beforeEach(async () => {
      await addKeys(at.store);
    });

    test('rejects the next demotion and pauses the key, with an event that states the reason', async () => {
      expect(await beginHere(newDemotion(1))).toBe(true);
      expect(await beginHere(newDemotion(2))).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
      const third = newDemotion(3);
      await expect(beginHere(third)).rejects.toMatchObject({
        name: 'RankdError',
        code: 'key_paused',
        message: expect.stringContaining('more than 2 different members in a short time (policy.breaker.demotions)'),
        details: {
          reason: 'paused',
          keyId: 'key_main',
          keyName: 'main',
          pausedNow: true,
          why: expect.stringContaining('more than 2'),
        },
      });
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

    test('also applies to all keys together', async () => {
      await beginHere(newDemotion(1));
      await beginHere(newDemotion(2));
      expect(await beginHere(newDemotion(3, { keyId: 'key_other' }))).toBe(true);
      await expect(beginHere(newDemotion(4, { keyId: 'key_other' }))).rejects.toMatchObject({ code: 'key_paused' });
      expect(await isPaused('key_other')).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
    });

    test('counts members, not changes: one member can be demoted step by step', async () => {
      for (let step = 0; step < 5; step += 1) {
        const change = newDemotion(1);
        expect(await beginHere(change)).toBe(true);
        await finish(at, change.id, { state: 'applied', code: null, message: '' });
      }
      const other = newDemotion(2);
      await beginHere(other);
      await finish(at, other.id, { state: 'applied', code: null, message: '' });
      expect(await beginHere(newDemotion(2))).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
    });

    test('counts open and unknown demotions, but not refused, dry, ineffective or older ones, promotions, or changes by operators', async () => {
      await record(at.store, newDemotion(1, { state: 'refused' }));
      await record(at.store, newDemotion(2, { state: 'applied', dryRun: true }));
      await record(at.store, newDemotion(3, { state: 'applied', rolesAfter: [100, 200] }));
      await record(at.store, newDemotion(4, { state: 'applied', requestedAt: since - 1 }));
      await record(at.store, newChange({ rankeeId: 5, state: 'applied' }));
      for (const rankeeId of [51, 52, 53]) {
        const { keyId: _, ...byOperator } = newDemotion(rankeeId, { state: 'applied' });
        await record(at.store, byOperator);
      }
      const [unconfirmed, open] = [newDemotion(6), newDemotion(7)];
      expect(await beginHere(unconfirmed)).toBe(true);
      await finish(at, unconfirmed.id, unknown);
      expect(await beginHere(open)).toBe(true);
      await finish(at, open.id, refused);
      expect(await beginHere(newDemotion(8))).toBe(true);
      await expect(beginHere(newDemotion(9))).rejects.toMatchObject({ code: 'key_paused' });
    });

    test('does not apply to promotions or changes by operators, or to any change if it is not set', async () => {
      await beginHere(newDemotion(1));
      await beginHere(newDemotion(2));
      expect(await beginHere(newChange({ rankeeId: 3 }))).toBe(true);
      await beginHere(newDemotion(31, { keyId: 'key_other' }));
      const { keyId: _, placeId: _place, ...byOperator } = newDemotion(32, { by: operator });
      expect(await beginHere(byOperator)).toBe(true);
      expect(await begin(at.store, newDemotion(4))).toBe(true);
      expect(await isPaused('key_main')).toBe(false);
    });

    test('a paused key begins no change and is not paused again; resuming the key resets its count', async () => {
      const pauses = async () =>
        (await at.store.listAudit({ limit: 20 })).filter(({ action }) => action === 'key.pause').length;
      for (const rankeeId of [1, 2]) await beginHere(newDemotion(rankeeId));
      await expect(beginHere(newDemotion(3))).rejects.toMatchObject({ code: 'key_paused' });
      for (const late of [newDemotion(4), newChange({ rankeeId: 5 })]) {
        const refusal = await beginHere(late).catch((error) => error);
        expect(refusal).toMatchObject({ code: 'key_paused' });
        expect(refusal.details).toStrictEqual({ reason: 'paused', keyId: 'key_main' });
      }
      expect(await pauses()).toBe(1);
      expect(await beginHere(newChange({ rankeeId: 5, keyId: 'key_other' }))).toBe(true);

      await at.clock.advance(1_000);
      await operate(at).pauseKey({ keyId: 'key_main', paused: false, reason: 'looked at' }, operator);
      const requestedAt = at.clock.now();
      expect(await beginHere(newDemotion(6, { requestedAt }))).toBe(true);
    });

    test('does not count earlier changes as new after the clock was set back', async () => {
      const demote = demoteWithin(hourMs);
      for (const rankeeId of [1, 2]) expect(await demote(rankeeId)).toBe(true);
      at.clock.setWallClock(at.clock.now() - hourMs);
      for (const rankeeId of [3, 4]) expect(await demote(rankeeId)).toBe(true);
      await expect(demote(5)).rejects.toMatchObject({ code: 'key_paused' });
    });

    test('counts changes after the clock was set back to before the key was resumed', async () => {
      const demote = demoteWithin(hourMs);
      await operate(at).pauseKey({ keyId: 'key_main', paused: false, reason: 'looked at' }, operator);
      at.clock.setWallClock(at.clock.now() - hourMs);
      for (const rankeeId of [1, 2]) expect(await demote(rankeeId)).toBe(true);
      await expect(demote(3)).rejects.toMatchObject({ code: 'key_paused' });
    });

    test('is not exceeded by concurrent demotions through two handles', async () => {
      const attempts = [1, 2, 3, 4, 5, 6].map((rankeeId, index) =>
        begin(index % 2 ? at.store : at.other, newDemotion(rankeeId), { limits: [limit] }),
      );
      const results = await Promise.allSettled(attempts);
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
      expect(await at.store.openChanges()).toHaveLength(2);
    });
  });

  describe('the limit on changes to high ranks', () => {
    const high: MemberLimit = { of: { fromRank: 100 }, since, byKey: 2, byAll: 3 };
    const promotion = (rankeeId: number, topRank: number, keyId = 'key_main') =>
      newChange({ rankeeId, topRank, keyId });

    beforeEach(async () => {
      await addKeys(at.store);
    });

    test('counts members with a privileged role if no rank is set', async () => {
      const limit: MemberLimit = { ...high, of: 'privileged' };
      const given = (rankeeId: number, privileged: boolean) => newChange({ rankeeId, privileged, keyId: 'key_main' });
      for (const rankeeId of [1, 2]) expect(await beginHere(given(rankeeId, true), [limit])).toBe(true);
      expect(await beginHere(given(3, false), [limit])).toBe(true);
      await expect(beginHere(given(4, true), [limit])).rejects.toMatchObject({ code: 'key_paused' });
    });

    test('counts promotions and demotions at or above the rank, and none below it', async () => {
      expect(await beginHere(promotion(1, 100), [high])).toBe(true);
      expect(await beginHere(newDemotion(2, { topRank: 200 }), [high])).toBe(true);
      for (const rankeeId of [3, 4, 5]) expect(await beginHere(promotion(rankeeId, 99), [high])).toBe(true);
      await expect(beginHere(promotion(6, 100), [high])).rejects.toMatchObject({
        code: 'key_paused',
        message: expect.stringMatching(
          /more than 2 different members who have or would get rank 100 or above.*policy\.breaker\.high_changes/,
        ),
      });
      expect(await isPaused('key_main')).toBe(true);
    });

    test('also applies to all keys together, independently of the demotion limit', async () => {
      for (const rankeeId of [1, 2]) await beginHere(promotion(rankeeId, 100), [limit, high]);
      expect(await beginHere(promotion(3, 100, 'key_other'), [limit, high])).toBe(true);
      await expect(beginHere(promotion(4, 100, 'key_other'), [limit, high])).rejects.toMatchObject({
        code: 'key_paused',
      });
      expect(await beginHere(newDemotion(5), [limit, high])).toBe(true);
    });
  });

  describe("a ranker's cooldown", () => {
    const rankerCooldownMs = 60_000;
    const by = (rankeeId: number, rest: Partial<RankChange> = {}) =>
      newChange({ rankeeId, rankerId: 9, requestedAt: at.clock.now(), ...rest });
    const beginBy = (change: RankChange) => begin(at.store, change, { policy: { rankerCooldownMs } });

    test('admits one of several changes that were decided concurrently', async () => {
      const first = by(1);
      expect(await beginBy(first)).toBe(true);
      expect(await at.store.lastRankedOthersAt(9)).toBe(first.requestedAt);
      await expect(beginBy(by(2))).rejects.toMatchObject({ code: 'cooldown', retryAfterMs: rankerCooldownMs });
      expect(await beginBy(by(3, { rankerId: 0 }))).toBe(true);
      expect(await beginBy(by(4, { rankerId: 0 }))).toBe(true);
      await at.clock.advance(10_000);
      await finish(at, first.id, { state: 'applied', code: null, message: '' });
      await at.clock.advance(rankerCooldownMs - 1);
      await expect(beginBy(by(2))).rejects.toMatchObject({ code: 'cooldown', retryAfterMs: 1 });
      await at.clock.advance(1);
      expect(await beginBy(by(2))).toBe(true);
      await expect(beginBy(by(5))).rejects.toMatchObject({ code: 'cooldown', retryAfterMs: rankerCooldownMs });
    });

    test('does not count refusals, dry runs, or ineffective repeats', async () => {
      await record(at.store, by(1, { state: 'applied', dryRun: true }));
      await record(at.store, by(2, { state: 'applied', rolesAfter: [100, 200] }));
      const change = by(3);
      await beginBy(change);
      await finish(at, change.id, refused);
      expect(await at.store.lastRankedOthersAt(9)).toBeUndefined();
      expect(await beginBy(by(4))).toBe(true);
    });
  });
}
