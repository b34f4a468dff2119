import { describe, expect, test } from 'vitest';
import type { NewDeclaration } from '../../../src/core/declared-keys.ts';
import { lookUp, newKey, newSecret, operate, operator } from './samples.ts';
import type { StoreCase } from './store-case.ts';

function declaration(name: string, rest: Partial<NewDeclaration> = {}): NewDeclaration {
  return {
    id: `key_${name}`,
    name,
    hash: newSecret(name).hash,
    mode: 'live',
    scopes: ['verify', 'rank'],
    rules: {},
    declaredIn: 'rankd.yaml:3',
    whitelist: { placeIds: [], declaredIn: 'rankd.yaml:5' },
    ...rest,
  };
}

export function declaredKeyContract(at: StoreCase): void {
  const declare = (...declared: NewDeclaration[]) => operate(at).declareKeys(declared, 'daemon');
  const found = (text: string) => lookUp(at.other, text);
  const places = (...placeIds: number[]) => ({ whitelist: { placeIds, declaredIn: 'rankd.yaml:5' } });

  /** Lists the audit log's actions, oldest first, without the first `since` events. */
  const audited = async (since = 0) =>
    (await at.store.listAudit({ limit: 100 }))
      .toReversed()
      .slice(since)
      .map(({ action, subject }) => `${action} ${subject}`);

  describe('declared keys', () => {
    test('are keys like any other, with the line of their declaration', async () => {
      const rules = { maxRank: 50, minRank: 2, direction: 'promote', selfRank: 'deny', isSystem: true } as const;
      const one = declaration('main', { rules, expiresAt: 4_102_444_800_000, scopes: ['rank'], ...places(42) });
      expect(await declare(one)).toEqual([]);
      const key = {
        id: 'key_main',
        name: 'main',
        mode: 'live',
        scopes: ['rank'],
        ...rules,
        expiresAt: 4_102_444_800_000,
        createdAt: at.clock.now(),
        declaredIn: 'rankd.yaml:3',
        secrets: [{ masked: expect.stringMatching(/^sha256:[\da-f]{8}…$/), createdAt: at.clock.now() }],
      };
      expect(await at.other.findKey('main')).toStrictEqual(key);
      expect(await found('main')).toMatchObject({ key, entry: { placeId: 42, active: true } });
      expect(await at.store.listEntries({})).toMatchObject([{ placeId: 42, note: '', declaredIn: 'rankd.yaml:5' }]);
    });

    test('a Discord key is declared without a secret, and a key that becomes one loses its secret', async () => {
      const forDiscord = (name: string): NewDeclaration => {
        const { hash: _, ...rest } = declaration(name, { rules: { isForDiscord: true } });
        return rest;
      };
      await declare(declaration('main', places(42)), forDiscord('staff'), forDiscord('trainers'));
      expect(await at.other.findKey('staff')).toMatchObject({ isForDiscord: true, secrets: [] });
      const before = await audited();
      await declare(declaration('main', places(42)), forDiscord('staff'), forDiscord('trainers'));
      expect(await audited(before.length)).toEqual([]);
      await declare(forDiscord('main'));
      expect(await at.other.findKey('main')).toMatchObject({ isForDiscord: true, secrets: [] });
      expect(await found('main')).toMatchObject({ retiring: { until: at.clock.now() } });
      expect(await audited(before.length)).toContain('key.declare key_main');
    });

    test('that are declared again without a change write no audit event, even if their lines moved', async () => {
      await declare(declaration('main', places(1, 2)));
      const before = await audited();
      expect(before).toEqual(['key.declare key_main', 'whitelist.add 1', 'whitelist.add 2']);
      await declare(declaration('main', { id: 'key_x', declaredIn: 'rankd.yaml:9', ...places(2, 1) }));
      expect(await audited(before.length)).toEqual([]);
      expect(await at.store.findKey('main')).toMatchObject({ id: 'key_main', declaredIn: 'rankd.yaml:9' });
    });

    test('change with their declaration: omitted rules are removed', async () => {
      await declare(declaration('main', { rules: { maxRank: 50 }, expiresAt: 4_102_444_800_000, ...places(1, 2) }));
      await declare(declaration('main', { mode: 'test', scopes: ['verify'], rules: { minRank: 5 }, ...places(2, 3) }));
      const key = await at.store.findKey('main');
      expect(key).toMatchObject({ mode: 'test', scopes: ['verify'], minRank: 5 });
      expect(key).not.toHaveProperty('maxRank');
      expect(key).not.toHaveProperty('expiresAt');
      expect((await at.store.listEntries({})).map(({ placeId }) => placeId)).toEqual([2, 3]);
      expect(await audited(3)).toEqual(['key.declare key_main', 'whitelist.add 3', 'whitelist.remove 1']);
    });

    test('with a new hash accept only the new secret, at once', async () => {
      await declare(declaration('main'));
      await declare(declaration('main', { hash: newSecret('next').hash }));
      const { key, secretId } = (await found('next')) ?? {};
      expect(key).toMatchObject({ id: 'key_main', secrets: [{ createdAt: at.clock.now() }] });
      expect(await found('main')).toMatchObject({ key: { id: 'key_main' }, retiring: { until: at.clock.now() } });
      await declare(declaration('main'));
      expect((await found('main'))?.secretId).not.toBe(secretId);
      expect(await found('main')).not.toHaveProperty('retiring');
      expect(await audited()).toEqual(Array(3).fill('key.declare key_main'));
    });

    test('retire an older secret again if the clock was set back to before it was retired', async () => {
      await declare(declaration('main'));
      await declare(declaration('main', { hash: newSecret('next').hash }));
      at.clock.setWallClock(at.clock.now() - 3_600_000);
      await declare(declaration('main', { hash: newSecret('next').hash }));
      expect(await found('main')).toMatchObject({ retiring: { until: at.clock.now() } });
    });

    test('that are no longer declared are revoked, and get their id back when they are declared again', async () => {
      await declare(declaration('main', places(1)), declaration('other'));
      await at.clock.advance(1_000);
      await declare(declaration('other'));
      const ended = await at.store.findKey('main');
      expect(ended).toMatchObject({ id: 'key_main', revokedAt: at.clock.now() });
      expect(ended).not.toHaveProperty('declaredIn');
      await declare(declaration('other'));
      expect(await audited(3)).toEqual(['key.revoke key_main']);
      await declare(declaration('other'), declaration('main', { id: 'key_new' }));
      expect(await at.store.findKey('main')).toMatchObject({ id: 'key_main', declaredIn: 'rankd.yaml:3' });
      expect(await at.store.findKey('main')).not.toHaveProperty('revokedAt');
    });

    test('that are declared again get their name back, even if a newer key had it and was revoked', async () => {
      await declare(declaration('main'));
      await declare();
      await operate(at).createKey(newKey('main', { id: 'key_2', secret: newSecret('second') }), operator);
      await operate(at).revokeKey('key_2', operator);
      await declare(declaration('main'));
      expect(await at.other.findKey('main')).toMatchObject({ id: 'key_main' });
      expect(await at.other.findKey('key_2')).toMatchObject({ id: 'key_2' });
    });

    test('can swap names and secrets', async () => {
      await declare(declaration('a'), declaration('b'));
      await declare(declaration('a', { hash: newSecret('b').hash }), declaration('b', { hash: newSecret('a').hash }));
      expect([(await found('a'))?.key.name, (await found('b'))?.key.name]).toEqual(['b', 'a']);
      await declare(declaration('c', { hash: newSecret('a').hash }));
      expect((await found('a'))?.key).toMatchObject({ name: 'c' });
    });

    test('never take over the name or a secret of an undeclared key: all conflicts are reported, and nothing is changed', async () => {
      await operate(at).createKey(newKey('main'), operator);
      await operate(at).createKey(newKey('gone'), operator);
      await operate(at).revokeKey('key_gone', operator);
      const before = await audited();
      const clashes = await declare(
        declaration('fine'),
        declaration('main', { hash: newSecret('new').hash }),
        declaration('gone'),
        declaration('x', { hash: newSecret('main').hash }),
      );
      expect(clashes).toMatchObject([
        { index: 1, field: 'name', key: { id: 'key_main' } },
        { index: 2, field: 'hash', key: { id: 'key_gone' } },
        { index: 3, field: 'hash', key: { id: 'key_main' } },
      ]);
      expect(await at.store.listKeys()).toHaveLength(2);
      expect(await audited(before.length)).toEqual([]);
      expect(await declare(declaration('gone', { id: 'key_2', hash: newSecret('anew').hash }))).toEqual([]);
    });

    test('can be changed only in the configuration, but can be paused and resumed', async () => {
      await declare(declaration('main'));
      const conflict = {
        code: 'conflict',
        message: 'Key "main" is declared in rankd.yaml:3; edit it there.',
        hint: expect.stringContaining('rankd reload'),
      };
      const rotation = { keyId: 'key_main', secret: newSecret('x'), oldExpiresAt: 0 };
      await expect(operate(at).rotateKey(rotation, operator)).rejects.toMatchObject(conflict);
      await expect(operate(at).revokeKey('key_main', operator)).rejects.toMatchObject(conflict);
      const update = { keyId: 'key_main', rules: { maxRank: null } };
      await expect(operate(at).setRules(update, operator)).rejects.toMatchObject(conflict);
      const pause = { keyId: 'key_main', paused: true, reason: 'many demotions' };
      expect(await operate(at).pauseKey(pause, 'daemon')).toHaveProperty('pausedAt');
      await declare(declaration('main'));
      expect(await operate(at).pauseKey({ ...pause, paused: false }, operator)).not.toHaveProperty('pausedAt');
    });

    test('retain their declared places; others can be added and removed', async () => {
      await operate(at).declareKeys([declaration('main', places(1))], 'daemon');
      const own = { keyId: 'key_main', placeIds: [2] };
      const both = { keyId: 'key_main', placeIds: [2, 1] };
      await operate(at).addEntries(both, operator);
      const conflict = { code: 'conflict', message: 'Place 1 is declared in rankd.yaml:5; edit it there.' };
      await expect(operate(at).addEntries({ ...both, note: 'lobby' }, operator)).rejects.toMatchObject(conflict);
      await expect(operate(at).removeEntries(both, operator)).rejects.toMatchObject(conflict);
      await expect(operate(at).setEntriesActive({ ...both, active: false }, operator)).rejects.toMatchObject(conflict);
      await declare(declaration('main', places(1)));
      expect((await at.store.listEntries({})).map(({ placeId, active }) => [placeId, active])).toEqual([
        [1, true],
        [2, true],
      ]);
      expect(await operate(at).removeEntries(own, operator)).toHaveLength(1);
    });
  });
}
