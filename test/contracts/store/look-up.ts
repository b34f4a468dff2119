import { describe, expect, test } from 'vitest';
import { largestId, lookUp, newKey, newSecret, operate, operator } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function lookUpContract(at: StoreCase): void {
  const found = (text: string, placeId?: number) => lookUp(at.store, text, placeId);

  describe('the record of a key', () => {
    test('includes the workspace and the key, but no entry if the place is not listed', async () => {
      const key = await operate(at).createKey(newKey('main'), operator);
      expect(await found('main')).toStrictEqual({
        workspace: await at.store.getWorkspace(),
        key,
        secretId: expect.any(String),
      });
    });

    test('includes the entry of the requested place and key, even a disabled one', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).createKey(newKey('other'), operator);
      await operate(at).addEntries({ keyId: 'key_main', placeIds: [42, largestId], note: 'lobby' }, operator);
      const entry = { keyId: 'key_main', placeId: largestId, active: true, note: 'lobby', addedAt: at.clock.now() };
      expect((await found('main', largestId))?.entry).toStrictEqual(entry);
      expect(await found('main', largestId - 1)).not.toHaveProperty('entry');
      expect(await found('other', 42)).not.toHaveProperty('entry');
      await operate(at).setEntriesActive({ keyId: 'key_main', placeIds: [42], active: false }, operator);
      expect((await found('main', 42))?.entry).toMatchObject({ placeId: 42, active: false });
    });

    test('is absent if no key ever had the secret', async () => {
      await operate(at).createKey(newKey('main'), operator);
      expect(await found('Main')).toBeUndefined();
    });

    test('is also returned for a revoked, expired or paused key', async () => {
      await operate(at).createKey(newKey('main', { expiresAt: 1 }), operator);
      await operate(at).pauseKey({ keyId: 'key_main', paused: true, reason: '' }, 'daemon');
      await operate(at).revokeKey('key_main', operator);
      const now = at.clock.now();
      expect((await found('main'))?.key).toMatchObject({ expiresAt: 1, pausedAt: now, revokedAt: now });
    });

    test('includes the start and end of the overlap for a rotated-out secret, even after the end', async () => {
      const oldExpiresAt = at.clock.now() + 1_000;
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).rotateKey({ keyId: 'key_main', secret: newSecret('new'), oldExpiresAt }, operator);
      const retiring = { since: at.clock.now(), until: oldExpiresAt };
      expect(await found('new')).not.toHaveProperty('retiring');
      expect(await found('main')).toMatchObject({ key: { id: 'key_main' }, retiring });
      await at.clock.advance(5_000);
      expect(await found('main')).toMatchObject({ key: { id: 'key_main' }, retiring });
    });

    test('shows changes by this handle at the next lookup', async () => {
      expect(await found('main')).toBeUndefined();
      await operate(at).createKey(newKey('main'), operator);
      expect(await found('main')).toMatchObject({ workspace: { active: true } });
      await operate(at).updateWorkspace({ active: false }, operator);
      expect(await found('main')).toMatchObject({ workspace: { active: false } });
      await operate(at).revokeKey('key_main', operator);
      expect((await found('main'))?.key).toHaveProperty('revokedAt');
    });

    test('shows changes by another handle at the next lookup', async () => {
      expect(await found('main')).toBeUndefined();
      await operate({ ...at, store: at.other }).createKey(newKey('main'), operator);
      expect(await found('main')).toMatchObject({ workspace: { active: true } });
      await operate({ ...at, store: at.other }).updateWorkspace({ active: false }, operator);
      expect(await found('main')).toMatchObject({ workspace: { active: false } });
      await operate({ ...at, store: at.other }).revokeKey('key_main', operator);
      expect((await found('main'))?.key).toHaveProperty('revokedAt');
    });

    test('matches the database even after more invented secrets than the cache holds', async () => {
      await operate(at).createKey(newKey('main'), operator);
      for (let from = 0; from < 10_001; from += 500) {
        const made = await Promise.all(Array.from({ length: 500 }, (_, index) => found(`made up ${from + index}`)));
        expect(made.every((record) => record === undefined)).toBe(true);
      }
      expect((await found('main'))?.key.name).toBe('main');
    });
  });
}
