import { expect, test, vi } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import type { KeyRecord } from '../../src/ports/index.ts';
import { KeyCache } from '../../src/stores/key-cache.ts';

/** A store with a version, which every record tells as its `secretId`; and a cache before it. */
function open() {
  const store = { version: 1, isDown: false, lookUps: 0, asked: 0 };
  const cache = new KeyCache({
    lookUp: () => {
      store.lookUps += 1;
      return { secretId: store.version } as unknown as KeyRecord;
    },
    changeToken: () => {
      store.asked += 1;
      if (store.isDown) throw new RankdError('store_unavailable', 'The database of rankd is closed.');
      return String(store.version);
    },
  });
  return { store, ask: (placeId = 42) => cache.lookUp({ hash: 'a', placeId })?.secretId };
}

/** The callback of the event loop that asked is over; another one may have received something. */
const pause = () => Promise.resolve();

test('what nobody has changed is looked up once', async () => {
  const { ask, store } = open();
  expect([ask(), ask()]).toEqual([1, 1]);
  await pause();
  expect(ask()).toBe(1);
  expect(store.lookUps).toBe(1);
});

test('that nobody has a key is remembered too', () => {
  const lookUp = vi.fn(() => undefined);
  const cache = new KeyCache({ lookUp, changeToken: () => 'a' });
  for (const _ of ['one', 'another']) expect(cache.lookUp({ hash: 'a', placeId: 42 })).toBeUndefined();
  expect(lookUp).toHaveBeenCalledTimes(1);
});

test('what callers make up does not fill the memory: of very many, only the last are remembered', () => {
  const { ask, store } = open();
  const isLookedUp = (placeId: number) => {
    const before = store.lookUps;
    ask(placeId);
    return store.lookUps > before;
  };
  for (let placeId = 0; placeId <= 10_000; placeId += 1) expect(isLookedUp(placeId)).toBe(true);
  expect(isLookedUp(10_000)).toBe(false);
  expect(isLookedUp(0)).toBe(true);
});

test('what was changed shows after a pause', async () => {
  const { ask, store } = open();
  expect(ask()).toBe(1);
  store.version = 2;
  await pause();
  expect(ask()).toBe(2);
});

test('whether anything was changed is asked once for all that is asked for without a pause', async () => {
  const { ask, store } = open();
  ask();
  ask();
  expect(store.asked).toBe(1);
  await pause();
  ask();
  expect(store.asked).toBe(2);
});

test('where the store can’t tell, all who ask without a pause are told, and those after them ask anew', async () => {
  const { ask, store } = open();
  expect(ask()).toBe(1);
  store.isDown = true;
  for (const times of [2, 3]) {
    await pause();
    for (const _ of ['one', 'another'])
      expect(() => ask()).toThrow(expect.objectContaining({ code: 'store_unavailable' }));
    expect(store.asked).toBe(times);
  }
});
