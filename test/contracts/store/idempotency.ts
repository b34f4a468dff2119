import { describe, expect, test } from 'vitest';
import { newChange, record } from './samples.ts';
import type { StoreCase } from './store-case.ts';

const group = 'group 1 on roblox.example';
const slot = { keyId: 'key_main', idempotencyKey: 'abc', group };
const claim = { ...slot, fingerprint: 'ff', since: 5_000 };
const claimed = { is: 'claimed' };

export function idempotencyContract(at: StoreCase): void {
  describe('idempotency keys', () => {
    test('a claim applies at every handle until its owner releases it', async () => {
      expect(await at.store.claimIdempotencyKey(claim)).toStrictEqual(claimed);
      for (const store of [at.store, at.other]) {
        const standing = await store.claimIdempotencyKey({ ...claim, fingerprint: 'ee' });
        expect(standing).toStrictEqual({ is: 'running', fingerprint: 'ff' });
      }
      await at.other.releaseIdempotencyKey(slot);
      expect(await at.other.claimIdempotencyKey(claim)).toMatchObject({ is: 'running' });
      await at.store.releaseIdempotencyKey(slot);
      expect(await at.other.claimIdempotencyKey(claim)).toStrictEqual(claimed);
    });

    test('of several concurrent claims to a key, exactly one succeeds', async () => {
      const stores = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? at.store : at.other));
      const standings = await Promise.all(stores.map((store) => store.claimIdempotencyKey(claim)));
      expect(standings.filter(({ is }) => is === 'claimed')).toHaveLength(1);
    });

    test('other keys, other callers and other groups are claimed separately', async () => {
      await at.store.claimIdempotencyKey(claim);
      for (const another of [{ idempotencyKey: 'ABC' }, { keyId: 'key_other' }, { group: 'group 2' }]) {
        expect(await at.other.claimIdempotencyKey({ ...claim, ...another })).toStrictEqual(claimed);
      }
    });

    test('a used key returns its change, but only if that is recent enough', async () => {
      const change = newChange({
        idempotencyKey: 'abc',
        fingerprint: 'ff',
        requestedAt: 5_000,
        state: 'applied',
        group,
      });
      await record(at.store, change);
      for (const store of [at.store, at.other]) {
        expect(await store.claimIdempotencyKey(claim)).toStrictEqual({ is: 'used', change });
      }
      expect(await at.store.claimIdempotencyKey({ ...claim, since: 5_001 })).toStrictEqual(claimed);
    });

    test('in each group, a key identifies a separate change', async () => {
      const here = newChange({ idempotencyKey: 'abc', state: 'applied', group });
      const there = newChange({ idempotencyKey: 'abc', state: 'applied', group: 'group 700 on roblox.example' });
      for (const change of [here, there]) {
        await record(at.store, change);
        const standing = await at.other.claimIdempotencyKey({ ...claim, group: change.group, since: 0 });
        expect(standing).toStrictEqual({ is: 'used', change });
        expect(await at.store.listChanges({ group: change.group, limit: 9 })).toStrictEqual([change]);
      }
    });

    test('the claims of a node end with it', async () => {
      await at.other.claimIdempotencyKey(claim);
      await at.other.close();
      expect(await at.store.claimIdempotencyKey(claim)).toStrictEqual(claimed);
    });
  });
}
