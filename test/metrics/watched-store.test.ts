import { expect, test } from 'vitest';
import { createMeters } from '../../src/metrics/meters.ts';
import { watchedStore } from '../../src/metrics/watched-store.ts';
import type { Store } from '../../src/ports/index.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { newChange, record } from '../contracts/store/samples.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A store whose methods use a private field, so they must be called on the store itself. */
class StoreInAClass implements Pick<Store, 'recordChange' | 'listChanges' | 'close'> {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  recordChange(...change: Parameters<Store['recordChange']>) {
    return this.#store.recordChange(...change);
  }

  listChanges(filter: Parameters<Store['listChanges']>[0]) {
    return this.#store.listChanges(filter);
  }

  close() {
    return this.#store.close();
  }
}

test('all methods of a store that is a class instance work while its changes are counted', async () => {
  const inner = await engineOf({ dataDir: tempDir(), clock: new ManualClock() }).openStore();
  const meters = createMeters();
  const store = watchedStore(new StoreInAClass(inner) as unknown as Store, meters);
  const change = newChange({ state: 'refused' });
  await record(store, change);
  expect(await store.listChanges({ limit: 9 })).toStrictEqual([change]);
  const counted = (await meters.changes.get()).values.filter(({ value }) => value > 0);
  expect(counted).toMatchObject([{ value: 1, labels: { outcome: 'refused' } }]);
  await store.close();
  await expect(inner.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
});
