import { beforeEach, describe, expect, test } from 'vitest';
import type { NewDeclaration } from '../../../src/core/declared-keys.ts';
import type { KeyMode } from '../../../src/core/model.ts';
import { begin, finish, lookUp, newChange, newKey, newSecret, operate, operator, unknown } from './samples.ts';
import type { StoreCase } from './store-case.ts';

/** Tests that a change does not begin once its permission has been withdrawn, and which handle holds an open change. */
export function beginContract(at: StoreCase): void {
  const keyId = 'key_main';
  const declaration: NewDeclaration = {
    ...{ id: keyId, name: 'main', hash: newSecret('main').hash, mode: 'live', scopes: ['verify', 'rank'], rules: {} },
    ...{ declaredIn: 'rankd.yaml:3', whitelist: { placeIds: [42], declaredIn: 'rankd.yaml:5' } },
  };
  /** Redeclares the key through the other handle, with the fields in `rest` replaced. */
  const declare = (rest: Partial<NewDeclaration>) =>
    operate({ ...at, store: at.other }).declareKeys([{ ...declaration, ...rest }], 'daemon');

  describe('a change does not begin if, since it was decided,', () => {
    beforeEach(async () => {
      await operate({ ...at, store: at.other }).declareKeys([declaration], 'daemon');
    });

    const whitelist = { placeIds: [], declaredIn: 'rankd.yaml:5' };
    test.each([
      ['the key lost the rank scope', () => declare({ scopes: ['verify'] }), 'key_not_allowed'],
      ['the key became a test key', () => declare({ mode: 'test' satisfies KeyMode }), 'invalid_key'],
      ['the key got a lower ceiling', () => declare({ rules: { maxRank: 19 } }), 'rank_not_allowed'],
      ['the key got a higher floor', () => declare({ rules: { minRank: 11 } }), 'rank_not_allowed'],
      ['the key got a different direction', () => declare({ rules: { direction: 'demote' } }), 'key_not_allowed'],
      ['the key was given an earlier expiry', () => declare({ expiresAt: at.clock.now() }), 'invalid_key'],
      ['the key was revoked', () => operate({ ...at, store: at.other }).declareKeys([], 'daemon'), 'invalid_key'],
      [
        'the key was paused',
        () => operate({ ...at, store: at.other }).pauseKey({ keyId, paused: true, reason: 'x' }, operator),
        'key_paused',
      ],
      ['the place was taken off the whitelist', () => declare({ whitelist }), 'place_not_whitelisted'],
      [
        'the workspace was suspended',
        () => operate({ ...at, store: at.other }).updateWorkspace({ active: false }, operator),
        'invalid_key',
      ],
      [
        'the workspace left the top plan',
        () => operate({ ...at, store: at.other }).updateWorkspace({ plan: 'free' }, operator),
        'invalid_key',
      ],
    ] as const)('%s', async (_what, narrow, code) => {
      expect(await begin(at.store, newChange({ rankeeId: 1 }))).toBe(true);
      await narrow();
      const change = newChange({ rankeeId: 2 });
      await expect(begin(at.store, change)).rejects.toMatchObject({ code });
      expect(await at.store.findChange(change.id)).toBeUndefined();
      const { keyId: _key, placeId: _place, ...byOperator } = newChange({ rankeeId: 3, by: operator });
      expect(await begin(at.store, byOperator)).toBe(true);
    });

    test('the place was disabled', async () => {
      const own = { keyId, placeIds: [43] };
      await operate(at).addEntries(own, operator);
      const from = (rankeeId: number) => begin(at.store, newChange({ rankeeId, placeId: 43 }));
      expect(await from(1)).toBe(true);
      await operate({ ...at, store: at.other }).setEntriesActive({ ...own, active: false }, operator);
      await expect(from(2)).rejects.toMatchObject({ code: 'place_not_whitelisted' });
    });

    test('its secret was rotated out, but it begins with the new secret', async () => {
      await operate(at).createKey(newKey('own'), operator);
      await operate(at).addEntries({ keyId: 'key_own', placeIds: [42] }, operator);
      const secretOf = async (text: string) => (await lookUp(at.store, text))?.secretId ?? expect.fail();
      const by = (rankeeId: number, secretId: string) =>
        begin(at.store, newChange({ rankeeId, keyId: 'key_own' }), { secretId });
      const old = await secretOf('own');
      expect(await by(1, old)).toBe(true);
      const rotation = { keyId: 'key_own', secret: newSecret('next'), oldExpiresAt: at.clock.now() };
      await operate({ ...at, store: at.other }).rotateKey(rotation, operator);
      await expect(by(2, old)).rejects.toMatchObject({ code: 'invalid_key' });
      expect(await by(2, await secretOf('next'))).toBe(true);
    });
  });

  describe('the holder of an open change', () => {
    test('is the handle that began it, as reported by both handles', async () => {
      const change = newChange();
      await begin(at.store, change);
      expect(await at.store.holds(change.id)).toBe(true);
      expect(await at.other.holds(change.id)).toBe(false);
      expect(await at.store.openChanges()).toStrictEqual([{ change, holder: 'this' }]);
      expect(await at.other.openChanges()).toStrictEqual([{ change, holder: 'other' }]);
      await finish(at, change.id, unknown);
      expect(await at.store.openChanges()).toMatchObject([{ holder: 'none' }]);
      expect(await at.store.holds(change.id)).toBe(false);
    });

    test('does not exist if the change ends as it begins', async () => {
      const change = newChange({ state: 'applied', finishedAt: at.clock.now() });
      expect(await begin(at.store, change)).toBe(true);
      expect(await at.store.openChanges()).toEqual([]);
      expect(await at.store.findChange(change.id)).toStrictEqual(change);
      expect(await at.store.holds(change.id)).toBe(false);
    });

    test('is never replaced while it is alive, whatever the clocks show', async () => {
      const change = newChange();
      await begin(at.store, change);
      for (const hours of [1, -2, 48]) {
        at.clock.setWallClock(at.clock.now() + hours * 3_600_000);
        expect(await at.other.takeOver(change.id)).toBeUndefined();
        expect(await at.other.openChanges()).toMatchObject([{ holder: 'other' }]);
      }
      expect(await finish({ ...at, store: at.other }, change.id, unknown)).toBe(false);
      expect(await at.store.holds(change.id)).toBe(true);
    });

    test('is replaced by a node that takes over the change once its own node has ended', async () => {
      const change = newChange();
      await begin(at.other, change);
      await at.other.close();
      const [taken, late] = [await at.store.takeOver(change.id), await at.store.takeOver('chg_no')];
      expect([taken, late]).toStrictEqual([change, undefined]);
      expect(await at.store.openChanges()).toStrictEqual([{ change, holder: 'this' }]);
    });

    test('is exactly one node after concurrent takeovers of an unknown change', async () => {
      const change = newChange();
      await begin(at.store, change);
      await finish(at, change.id, unknown);
      const taken = await Promise.all([at.store, at.other].map((store) => store.takeOver(change.id)));
      expect(taken.filter((one) => one !== undefined)).toHaveLength(1);
    });

    test('can release the change without ending it', async () => {
      const change = newChange();
      await begin(at.store, change);
      await at.other.release(change.id);
      expect(await at.store.holds(change.id)).toBe(true);
      await at.store.release(change.id);
      expect(await at.other.takeOver(change.id)).toStrictEqual(change);
    });
  });
}
