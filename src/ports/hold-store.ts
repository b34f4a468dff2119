import type { HoldUpdate } from '../core/holds.ts';
import type { Hold, HoldState } from '../core/model.ts';

export interface HoldFilter {
  group: string;
  rankeeId?: number | undefined;
  states?: readonly HoldState[] | undefined;
  limit: number;
}

/** Suspensions and temporary ranks. They begin and end with rank changes, in `ChangeStore`. */
export interface HoldStore {
  /** The hold with this id, also one that is over; `undefined` if none is kept. */
  findHold(id: string): Promise<Hold | undefined>;
  /** Newest first. */
  listHolds(filter: HoldFilter): Promise<Hold[]>;
  /**
   * The holds that are active or stuck and whose end and next try are due at `now` (epoch milliseconds), those that end first at the head.
   * With `isAnew`, no next try is waited for.
   */
  dueHolds(query: { group: string; now: number; isAnew: boolean; limit: number }): Promise<Hold[]>;
  /**
   * Changes a hold that is active or stuck, as `judge` says, together with its events. `judge` is synchronous and pure, and may run
   * more than once. Resolves with the hold as it is kept now; `undefined` if it is in another state.
   */
  updateHold(id: string, judge: (hold: Hold) => HoldUpdate): Promise<Hold | undefined>;
}
