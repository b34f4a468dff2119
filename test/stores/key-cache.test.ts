import { expect, test, vi } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import type { KeyRecord } from '../../src/ports/index.ts';
import { KeyCache } from '../../src/stores/key-cache.ts';

/**
 * Creates a fake store and a cache for it. Each record's `secretId` is the store's version at the time of the lookup.
 */
function open() {
  const store = { version: 1, isDown: false, lookUps: 0 };
  const cache = new KeyCache({
    lookUp: () => {
      store.lookUps += 1;
      return { secretId: String(store.version) } as KeyRecord;
    },
    changeToken: () => {
      if (store.isDown) throw new RankdError('store_unavailable', "rankd's database is closed.");
      return String(store.version);
    },
  });
  return { store, cache, lookUp: (placeId = 42) => cache.lookUpKey({ hash: 'a', placeId })?.secretId };
}

test('an unchanged key is looked up once', () => {
  const { cache, lookUp, store } = open();
  for (const _ of ['one turn', 'another']) {
    expect(cache.freshen()).toBeUndefined();
    expect([lookUp(), lookUp()]).toEqual(['1', '1']);
  }
  expect(store.lookUps).toBe(1);
});

test('an unknown key is cached too', () => {
  const lookUp = vi.fn(() => undefined);
  const cache = new KeyCache({ lookUp, changeToken: () => 'a' });
  for (const _ of ['one', 'another']) expect(cache.lookUpKey({ hash: 'a', placeId: 42 })).toBeUndefined();
  expect(lookUp).toHaveBeenCalledTimes(1);
});

test('invented secrets cannot fill the memory, because a full cache is cleared', () => {
  const { lookUp, store } = open();
  const isLookedUp = (placeId: number) => {
    const before = store.lookUps;
    lookUp(placeId);
    return store.lookUps > before;
  };
  for (let placeId = 0; placeId <= 10_000; placeId += 1) expect(isLookedUp(placeId)).toBe(true);
  expect(isLookedUp(10_000)).toBe(false);
  expect(isLookedUp(0)).toBe(true);
});

test('a change is visible after the next freshen', async () => {
  const { cache, lookUp, store } = open();
  expect(lookUp()).toBe('1');
  store.version = 2;
  await cache.freshen();
  expect(lookUp()).toBe('2');
});

test('freshen rejects while the store can’t check for changes', async () => {
  const { cache, lookUp, store } = open();
  expect(lookUp()).toBe('1');
  Object.assign(store, { version: 2, isDown: true });
  await expect(cache.freshen()).rejects.toMatchObject({ code: 'store_unavailable' });
  store.isDown = false;
  expect(cache.freshen()).toBeUndefined();
  expect(lookUp()).toBe('2');
});
