import type { Clock, Store } from '../../../src/ports/index.ts';
import type { ManualClock } from '../../support/manual-clock.ts';

/** A database of an engine, empty at first. Each store that is opened on it is what one more process would have. Disposing removes it. */
export interface TestDatabase extends AsyncDisposable {
  open(clock: Clock): Promise<Store>;
}

/** What a test of the suite works with: a store, and a second one on the same database. */
export interface StoreCase {
  store: Store;
  other: Store;
  clock: ManualClock;
}
