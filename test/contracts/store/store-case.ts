import type { Clock, Store, StoreEngine } from '../../../src/ports/index.ts';
import type { ManualClock } from '../../support/manual-clock.ts';

/** A separate database without data, for one test. Each store opened on it acts like a separate process. */
export interface TestDatabase extends AsyncDisposable {
  engine(clock: Clock): StoreEngine;
}

/** Two stores on the same database. */
export interface StoreCase {
  store: Store;
  other: Store;
  clock: ManualClock;
}
