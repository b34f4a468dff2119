/** A token bucket of all nodes together. */
export interface SharedLimit {
  /** Names it among all limits. */
  name: string;
  perMinute: number;
  burst: number;
}

/** How often callers were let through, and how long ago the first of them was: a limit fills up from then on. */
export interface Spent {
  count: number;
  agoMs: number;
}

/** What callers have used up of their limits, counted over all nodes that share the store. It may be lost with the store's server: then all are full. */
export interface LimitStore {
  /**
   * Takes one from each limit in turn, up to the first of which nothing is left: that one stays as it is. Of all nodes that ask at once, no
   * more are allowed than there are. Resolves with those that were asked, and what is left of each.
   */
  takeShared(limits: readonly SharedLimit[]): Promise<Array<{ isAllowed: boolean; left: number }>>;
  /** Tells what this node has let through by itself. Resolves with what is left of each for all nodes; it can be less than nothing. */
  spend(spent: ReadonlyArray<SharedLimit & Spent>): Promise<number[]>;
  /** Forgets limits that are full again. */
  forgetFullLimits(): Promise<void>;
}
