import type { Clock, Store, StoreEngine } from '../../../src/ports/index.ts';
import type { ManualClock } from '../../support/manual-clock.ts';

/**
 * The location of a separate, empty database of an engine; disposal removes it. Each store opened there acts like one
 * more process.
 */
export interface TestDatabase extends AsyncDisposable {
  engine(clock: Clock): StoreEngine;
}

/** The stores for a test of the suite: one store, and a second one on the same database. */
export interface StoreCase {
  store: Store;
  other: Store;
  clock: ManualClock;
}
