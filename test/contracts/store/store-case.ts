import type { Clock, Store, StoreEngine } from '../../../src/ports/index.ts';
import type { ManualClock } from '../../support/manual-clock.ts';

/** Where an engine keeps a database of its own, with nothing in it yet; disposing removes it. Each store that is opened there is what one more process has. */
export interface TestDatabase extends AsyncDisposable {
  engine(clock: Clock): StoreEngine;
}

/** What a test of the suite works with: a store, and a second one on the same database. */
export interface StoreCase {
  store: Store;
  other: Store;
  clock: ManualClock;
}
