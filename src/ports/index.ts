import type { Clock } from '../base/clock.ts';
import type { Platform } from './platform.ts';
import type { Store } from './store.ts';

export type { Clock } from '../base/clock.ts';
export type * from './change-store.ts';
export type * from './platform.ts';
export type * from './store.ts';
export type * from './store-operations.ts';
export type * from './webhooks.ts';

/**
 * The interfaces between the use cases and the adapters. Every store and platform passes its port's test suite in
 * `test/contracts`, and throws only `RankdError`.
 */
export interface Ports {
  store: Store;
  platform: Platform;
  clock: Clock;
}

/** Wraps ports to observe calls to them. The wrapped ports behave the same. */
export interface Instrumentation {
  store(store: Store): Store;
  platform(platform: Platform): Platform;
}
