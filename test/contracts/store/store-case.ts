import type { Clock, Store } from '../../../src/ports/index.ts';
import type { ManualClock } from '../../support/manual-clock.ts';

export type OpenStore = (where: { dataDir: string; clock: Clock }) => Promise<Store>;

/** What a test of the suite works with: a fresh store, and a second handle on the same data as another process has. */
export interface StoreCase {
  store: Store;
  other: Store;
  clock: ManualClock;
}
