import { describe, expect, test } from 'vitest';
import type { KeySelection } from '../../../src/ports/index.ts';
import { awkwardText, lookUp, newKey, newSecret, operate, operator } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function keyContract(at: StoreCase): void {
  describe('keys', () => {
    test('a key is read as it was created, with omitted fields absent', async () => {
      const made = await operate(at).createKey(newKey('main'), operator);
      expect(made).toStrictEqual({
        id: 'key_main',
        name: 'main',
        mode: 'live',
        scopes: ['verify', 'rank'],
        createdAt: at.clock.now(),
        secrets: [{ masked: 'rk_live_mai…abc', createdAt: at.clock.now() }],
      });
      expect(await at.other.findKey('main')).toStrictEqual(made);
    });

    test('mode, scopes, rules and expiry are stored', async () => {
      const rules = { maxRank: 50, minRank: 10, direction: 'promote', selfRank: 'deny', ratePerMinute: 60 } as const;
      const settings = {
        mode: 'test',
        isSystem: true,
        isPrivileged: true,
        isAnyPlace: true,
        ...rules,
        expiresAt: 4_102_444_800_000,
      } as const;
      await operate(at).createKey(newKey('main', { ...settings, scopes: ['verify'] }), operator);
      expect(await at.store.findKey('key_main')).toMatchObject(settings);
    });

    test('a Discord key has no secret, and never gets one', async () => {
      const { secret: _, ...key } = newKey('main', { isForDiscord: true });
      const made = await operate(at).createKey(key, operator);
      expect(made).toMatchObject({ isForDiscord: true, secrets: [] });
      expect(await at.other.findKey('main')).toStrictEqual(made);
      expect(await lookUp(at.other, 'main')).toBeUndefined();
      const rotation = { keyId: 'key_main', secret: newSecret('2'), oldExpiresAt: at.clock.now() };
      await expect(operate(at).rotateKey(rotation, operator)).rejects.toMatchObject({
        code: 'conflict',
        message: 'Key main is for Discord: it has no secret to replace.',
      });
      await expect(
        operate(at).setRules({ keyId: 'key_main', rules: { isSystem: true } }, operator),
      ).rejects.toMatchObject({
        code: 'conflict',
      });
      expect(await at.store.findKey('main')).toStrictEqual(made);
    });

    test('a name is stored exactly, whatever characters it has', async () => {
      await operate(at).createKey(newKey('main', { name: awkwardText }), operator);
      expect(await at.other.findKey(awkwardText)).toMatchObject({ id: 'key_main', name: awkwardText });
    });

    test('the name of a valid key is rejected for another key at every handle, and nothing is written', async () => {
      await operate(at).createKey(newKey('main'), operator);
      const again = newKey('main', { id: 'key_2', secret: newSecret('2') });
      await expect(operate({ ...at, store: at.other }).createKey(again, operator)).rejects.toMatchObject({
        name: 'RankdError',
        code: 'already_exists',
        hint: expect.stringContaining('rankd key show main'),
      });
      expect(await at.store.listKeys()).toHaveLength(1);
      expect(await at.store.listAudit({ limit: 10 })).toHaveLength(1);
    });

    test('the name of a revoked key can be reused, and then identifies the new key', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).revokeKey('key_main', operator);
      expect(await at.store.findKey('main')).toMatchObject({ id: 'key_main' });
      await operate(at).createKey(newKey('main', { id: 'key_2', secret: newSecret('2') }), operator);
      expect(await at.store.findKey('main')).toMatchObject({ id: 'key_2' });
      expect(await at.store.findKey('key_main')).toMatchObject({ id: 'key_main' });
      await operate(at).revokeKey('key_2', operator);
      expect(await at.store.findKey('main')).toMatchObject({ id: 'key_2' });
    });

    test('an id takes precedence over a name', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).createKey(newKey('key_main', { id: 'key_2' }), operator);
      expect(await at.store.findKey('key_main')).toMatchObject({ id: 'key_main' });
      expect(await at.store.findKey('nobody')).toBeUndefined();
    });

    test('keys are listed oldest first, even if the clock was set back', async () => {
      await operate(at).createKey(newKey('b'), operator);
      at.clock.setWallClock(0);
      await operate(at).createKey(newKey('a'), operator);
      expect((await at.store.listKeys()).map((key) => key.name)).toEqual(['b', 'a']);
    });

    test('keys can be listed after a given key, up to a limit, or by ids or name', async () => {
      for (const name of ['a', 'b', 'c', 'd']) await operate(at).createKey(newKey(name), operator);
      const names = async (selection: KeySelection) => (await at.store.listKeys(selection)).map(({ name }) => name);
      expect(await names({ limit: 2 })).toEqual(['a', 'b']);
      expect(await names({ after: 'key_b', limit: 5 })).toEqual(['c', 'd']);
      expect(await names({ after: 'key_d' })).toEqual([]);
      expect(await names({ ids: ['key_d', 'key_a', 'key_none'] })).toEqual(['a', 'd']);
      expect(await names({ ids: [] })).toEqual([]);
      expect(await names({ name: 'b' })).toEqual(['b']);
    });

    test('keys that are accepted at a time can be listed, and those of the simulated group separately', async () => {
      const now = at.clock.now();
      for (const name of ['a', 'gone']) await operate(at).createKey(newKey(name), operator);
      await operate(at).createKey(newKey('brief', { expiresAt: now + 10 }), operator);
      await operate(at).createKey(newKey('simulated', { isSimulated: true }), operator);
      await operate(at).revokeKey('key_gone', operator);
      const names = async (selection: KeySelection) => (await at.store.listKeys(selection)).map(({ name }) => name);
      expect(await names({ acceptedAt: now + 9 })).toEqual(['a', 'brief', 'simulated']);
      expect(await names({ acceptedAt: now + 10 })).toEqual(['a', 'simulated']);
      expect(await names({ isSimulated: true })).toEqual(['simulated']);
      expect(await names({ acceptedAt: now + 10, isSimulated: false })).toEqual(['a']);
      expect(await at.other.findKey('simulated')).toMatchObject({ isSimulated: true });
      await at.other.updateKey('key_simulated', () => ({ change: { isSimulated: null }, events: [] }));
      expect(await at.store.findKey('simulated')).not.toHaveProperty('isSimulated');
    });

    test('reusing a secret or an id is a conflict', async () => {
      await operate(at).createKey(newKey('main'), operator);
      const sameSecret = newKey('other', { secret: newSecret('main') });
      await expect(operate(at).createKey(sameSecret, operator)).rejects.toMatchObject({ code: 'conflict' });
      const sameId = newKey('other', { id: 'key_main' });
      await expect(operate(at).createKey(sameId, operator)).rejects.toMatchObject({ code: 'conflict' });
      expect(await at.store.listKeys()).toHaveLength(1);
    });

    test('after a rotation both secrets are listed, newest first, until the overlap ends', async () => {
      const start = at.clock.now();
      await operate(at).createKey(newKey('main'), operator);
      await at.clock.advance(1_000);
      const rotation = { keyId: 'key_main', secret: newSecret('new'), oldExpiresAt: start + 5_000 };
      const rotated = await operate(at).rotateKey(rotation, operator);
      expect(rotated.secrets).toStrictEqual([
        { masked: 'rk_live_new…abc', createdAt: start + 1_000 },
        { masked: 'rk_live_mai…abc', createdAt: start, replacedAt: start + 1_000, expiresAt: start + 5_000 },
      ]);
      await at.clock.advance(4_000);
      expect((await at.other.findKey('main'))?.secrets).toHaveLength(1);
    });

    test('a second rotation never gives an older secret more time', async () => {
      const start = at.clock.now();
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).rotateKey({ keyId: 'key_main', secret: newSecret('2'), oldExpiresAt: start + 1_000 }, operator);
      const third = { keyId: 'key_main', secret: newSecret('3'), oldExpiresAt: start + 9_000 };
      const { secrets } = await operate(at).rotateKey(third, operator);
      expect(secrets.map((secret) => secret.expiresAt)).toEqual([undefined, start + 9_000, start + 1_000]);
    });

    test('a second rotation retains the time when the oldest secret was replaced', async () => {
      const start = at.clock.now();
      await operate(at).createKey(newKey('main'), operator);
      const rotation = { keyId: 'key_main', oldExpiresAt: start + 9_000 };
      await operate(at).rotateKey({ ...rotation, secret: newSecret('2') }, operator);
      await at.clock.advance(1_000);
      const { secrets } = await operate(at).rotateKey({ ...rotation, secret: newSecret('3') }, operator);
      expect(secrets.map((secret) => secret.replacedAt)).toEqual([undefined, start + 1_000, start]);
    });

    test('the last use of each secret is stored, without an audit event', async () => {
      await operate(at).createKey(newKey('main'), operator);
      const rotation = { keyId: 'key_main', secret: newSecret('new'), oldExpiresAt: at.clock.now() + 9_000 };
      await operate(at).rotateKey(rotation, operator);
      const idOf = async (text: string) => (await lookUp(at.store, text))?.secretId ?? '';
      const use = { secretId: await idOf('main'), at: 5, placeId: 42 };
      await at.store.recordKeyUses([use, { ...use, secretId: await idOf('new'), at: 6 }, { ...use, secretId: '999' }]);
      await at.other.recordKeyUses([{ ...use, at: 7, placeId: 43 }]);
      expect((await at.store.findKey('main'))?.secrets).toMatchObject([
        { lastUsedAt: 6, lastPlaceId: 42 },
        { lastUsedAt: 7, lastPlaceId: 43 },
      ]);
      expect(await at.store.listAudit({ limit: 10 })).toHaveLength(2);
    });

    test('revoking a key again does not change the time of its revocation', async () => {
      await operate(at).createKey(newKey('main'), operator);
      const { revokedAt } = await operate(at).revokeKey('key_main', operator);
      expect(revokedAt).toBe(at.clock.now());
      await at.clock.advance(1_000);
      expect(await operate({ ...at, store: at.other }).revokeKey('key_main', operator)).toMatchObject({ revokedAt });
    });

    test('a revoked key gets no new secret', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).revokeKey('key_main', operator);
      const rotation = { keyId: 'key_main', secret: newSecret('new'), oldExpiresAt: 0 };
      await expect(operate(at).rotateKey(rotation, operator)).rejects.toMatchObject({ code: 'conflict' });
    });

    test('pausing a key again does not change the time of the pause, and resuming ends it', async () => {
      await operate(at).createKey(newKey('main'), operator);
      const pause = { keyId: 'key_main', paused: true, reason: 'many demotions' };
      const { pausedAt } = await operate(at).pauseKey(pause, 'daemon');
      expect(pausedAt).toBe(at.clock.now());
      await at.clock.advance(1_000);
      expect(await operate(at).pauseKey(pause, 'daemon')).toMatchObject({ pausedAt });
      const lifted = await operate({ ...at, store: at.other }).pauseKey(
        { ...pause, paused: false, reason: 'looked at' },
        operator,
      );
      expect(lifted).not.toHaveProperty('pausedAt');
    });

    test('rules are set and removed one by one, and the audit records each change', async () => {
      await operate(at).createKey(newKey('main', { maxRank: 50, selfRank: 'deny' }), operator);
      const rules = { maxRank: null, minRank: 10, direction: 'demote', isSystem: true, ratePerMinute: null } as const;
      const changed = await operate(at).setRules({ keyId: 'key_main', rules }, operator);
      expect(changed).toStrictEqual(await at.other.findKey('main'));
      expect(changed).toMatchObject({ minRank: 10, direction: 'demote', isSystem: true, selfRank: 'deny' });
      expect(changed).not.toHaveProperty('maxRank');
      expect(await at.store.listAudit({ limit: 1 })).toMatchObject([
        {
          action: 'key.set',
          by: operator,
          subject: 'key_main',
          detail: {
            maxRank: { from: 50, to: null },
            minRank: { from: null, to: 10 },
            direction: { from: null, to: 'demote' },
            isSystem: { from: null, to: true },
          },
        },
      ]);
      const plain = await operate(at).setRules(
        { keyId: 'key_main', rules: { isSystem: null, selfRank: null } },
        operator,
      );
      expect(plain).not.toHaveProperty('isSystem');
      expect(plain).not.toHaveProperty('selfRank');
    });

    test('the rules of a revoked key cannot be changed', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).revokeKey('key_main', operator);
      const change = { keyId: 'key_main', rules: { maxRank: 50 } };
      await expect(operate(at).setRules(change, operator)).rejects.toMatchObject({ code: 'conflict' });
    });

    test('changing a missing key fails with not_found', async () => {
      const missing = { code: 'not_found' };
      const rotation = { keyId: 'key_no', secret: newSecret('x'), oldExpiresAt: 0 };
      await expect(operate(at).rotateKey(rotation, operator)).rejects.toMatchObject(missing);
      const rules = { keyId: 'key_no', rules: {} };
      await expect(operate(at).setRules(rules, operator)).rejects.toMatchObject(missing);
      await expect(operate(at).revokeKey('key_no', operator)).rejects.toMatchObject(missing);
      const pause = { keyId: 'key_no', paused: true, reason: '' };
      await expect(operate(at).pauseKey(pause, operator)).rejects.toMatchObject(missing);
      expect(await at.store.listAudit({ limit: 10 })).toEqual([]);
    });

    test('the audit records every step of a key, but never a secret or its hash', async () => {
      const key = newKey('main', { maxRank: 50 });
      const rotated = newSecret('rotated');
      await operate(at).createKey(key, operator);
      await operate(at).rotateKey({ keyId: key.id, secret: rotated, oldExpiresAt: 9 }, operator);
      await operate(at).pauseKey({ keyId: key.id, paused: true, reason: 'why' }, 'daemon');
      await operate(at).pauseKey({ keyId: key.id, paused: false, reason: 'fine' }, operator);
      await operate(at).revokeKey(key.id, operator);
      const events = await at.store.listAudit({ limit: 10 });
      expect(events.every((event) => event.subject === key.id)).toBe(true);
      expect(events.map(({ action, by, detail }) => [action, by, detail]).reverse()).toEqual([
        ['key.create', operator, { name: 'main', mode: 'live', scopes: ['verify', 'rank'], maxRank: 50 }],
        ['key.rotate', operator, { name: 'main', oldExpiresAt: 9 }],
        ['key.pause', 'daemon', { name: 'main', reason: 'why' }],
        ['key.resume', operator, { name: 'main', reason: 'fine' }],
        ['key.revoke', operator, { name: 'main' }],
      ]);
    });
  });
}
