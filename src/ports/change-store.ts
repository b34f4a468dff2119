import type { BeginFacts, BeginVerdict, MemberWindow } from '../core/begin.ts';
import type { ChangeUpdate } from '../core/change-state.ts';
import type { DomainEvent } from '../core/events.ts';
import type { HoldsOfMember, HoldUpdate } from '../core/holds.ts';
import type { ChangeState, Hold, HoldState, RankChange } from '../core/model.ts';

/** A selection of changes. Without any field, it includes all of them. */
export interface ChangeSelection {
  /** Only changes in this group, as its changes name it. */
  group?: string | undefined;
  /** Only the changes with these ids. */
  ids?: readonly string[] | undefined;
  rankeeId?: number | undefined;
  /**
   * Only changes of members whose name begins with this, in any case: the name that the caller gave, or the stored name
   * of the member (`PersonStore.storeUserName`). It has only letters, digits and underscores.
   */
  rankeeName?: string | undefined;
  rankerId?: number | undefined;
  keyId?: string | undefined;
  placeId?: number | undefined;
  /**
   * The actor in the history: `key:<id>`, `cli:<user>@<host>` or `web:<user>@<host>`. The part before the colon alone
   * includes all of that kind: `cli` is every operator in a shell.
   */
  by?: string | undefined;
  undoId?: string | undefined;
  states?: ChangeState[] | undefined;
  /** Only changes requested at this time or later (epoch milliseconds). */
  since?: number | undefined;
  /** Only changes requested before this time (epoch milliseconds). */
  until?: number | undefined;
}

export interface ChangeFilter extends ChangeSelection {
  limit: number;
}

/** A page of the history, newest first. */
export interface ChangePage {
  changes: RankChange[];
  /** The cursor of the next page; absent if there is none. Only the store can interpret it. */
  next?: string;
}

/** The number of changes by a key, or by the operator, with this state. */
export interface ChangeTally {
  /** Absent for changes by the operator. */
  keyId?: string;
  state: ChangeState;
  /** As in `RankChange`. */
  demotion: boolean;
  /** True if they were applied and left the ranks as they were, such as a change of an extra role. */
  isQuiet: boolean;
  count: number;
}

/** An open change (pending or unknown), and its holder. */
export interface OpenChange {
  change: RankChange;
  /** `this`: this handle · `other`: another live node · `none`: no node, or a dead one. */
  holder: 'this' | 'other' | 'none';
}

/** The question to the store when a change begins, in addition to the change's own fields. */
export interface BeginQuestion {
  /** The secret of the request. */
  secretId?: string | undefined;
  /** The windows for which to count changed members. */
  windows: readonly MemberWindow[];
}

/** Decides the new state of a change, and of its member's holds, from the stored ones. */
export type JudgeChange = (kept: { change: RankChange; holds: HoldsOfMember }) => ChangeUpdate;

/**
 * The history of rank changes.
 *
 * An open change has a holder: the node that works on it. A node is a handle on the store, from when it is opened until it is
 * closed or its process ends, however that ends. No method compares wall clocks to tell whether a node is alive.
 */
export interface ChangeStore {
  /**
   * Records a change that ended without a write (refused, failed or dry run) together with its events; or one that is
   * unknown and that the store has lost, without a holder. Throws `conflict` if the id is taken, or if the idempotency
   * key belongs to another change of the last 24 hours.
   */
  recordChange(change: RankChange, events: readonly DomainEvent[]): Promise<void>;
  /**
   * Reads the facts, passes them to `judge`, and stores its verdict, all in one transaction: no other handle can begin
   * or end a change, or change a key, its places or the workspace, between the facts and the verdict. `judge` is
   * synchronous and pure; it may run more than once. If the verdict is `begin`, the change is stored: with this handle
   * as its holder if its state is `pending`; without one if it has ended already, because there is nothing to write.
   * The holds of the verdict are stored with it. Resolves with the verdict. Throws `conflict` like `recordChange`.
   */
  beginChange(
    change: RankChange,
    question: BeginQuestion,
    judge: (facts: BeginFacts) => BeginVerdict,
  ): Promise<BeginVerdict>;
  /**
   * Updates an open change that this handle holds, by `judge`, together with the member's holds and the events. `judge`
   * gets them as stored; it is synchronous and pure, and may run more than once. Resolves with the stored change;
   * `undefined` if it is not open, or if this handle does not hold it.
   */
  updateChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Reopens a change that has ended, by `judge`, together with the member's holds and the events, unless the member has
   * a newer change. `judge` is the same as in `updateChange`. The change then has no holder. Resolves with the stored
   * change; `undefined` if nothing was done.
   */
  reopenChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Makes this handle the holder of an open change, by compare and set: of several concurrent attempts, one succeeds.
   * Resolves with the stored change; `undefined` if it is not open, or if another live node holds it.
   */
  takeOver(changeId: string): Promise<RankChange | undefined>;
  /**
   * Releases an open change that this handle holds, so that any node can take it over. Does nothing if this handle does
   * not hold it.
   */
  release(changeId: string): Promise<void>;
  /** True while this handle holds the open change. */
  holds(changeId: string): Promise<boolean>;
  /**
   * Returns the time for which this handle's node may still write to the platform for the changes that it holds, in
   * milliseconds: 0 once it has ended. `Infinity` if no node takes over from a node that is only slow.
   */
  leaseLeft(): () => number;
  /** The change with this id, in any state; `undefined` if none is stored. */
  findChange(id: string): Promise<RankChange | undefined>;
  /** The member's newest change in any state, and the open one if there is one. */
  latestChange(rankeeId: number): Promise<{ latestId?: string; open?: OpenChange }>;
  /**
   * The time of this member's last applied change (epoch milliseconds); dry runs and ineffective repeats do not count.
   */
  lastAppliedAt(rankeeId: number): Promise<number | undefined>;
  /** The member's newest finished change that altered roles or was reverted; dry runs do not count. */
  lastWritten(rankeeId: number): Promise<RankChange | undefined>;
  /**
   * The time of this ranker's last change (epoch milliseconds). An open change counts from its request; dry runs and
   * ineffective repeats do not count.
   */
  lastRankedOthersAt(rankerId: number): Promise<number | undefined>;
  /** Newest first. */
  listChanges(filter: ChangeFilter): Promise<RankChange[]>;
  /**
   * A page of the history: the first one, or the one for the `cursor` of the previous page. New changes cause no gaps
   * or duplicates.
   */
  pageChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * Like `pageChanges`, for a waiting person: each page is fast, however long the history is and whatever the filter.
   * It may therefore hold fewer changes than `limit`, or none, although there is a next one. Over all pages, each
   * change appears once, newest first: by arrival or, with a filter by time, by the time of the request. Callers may
   * send any cursor; an invalid one is refused.
   */
  searchChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * Counts the changes in a group that were requested from `since` and before `until` (epoch milliseconds). Dry runs do
   * not count.
   */
  tallyChanges(query: { group: string; since: number; until: number }): Promise<ChangeTally[]>;
  /**
   * The number of changes since a time (epoch milliseconds), by state; only in the given group, if any. Dry runs do not
   * count.
   */
  countChanges(since: number, group?: string): Promise<Record<ChangeState, number>>;
  /** Every open change, oldest first. */
  openChanges(): Promise<OpenChange[]>;
}

export interface HoldFilter {
  group: string;
  rankeeId?: number | undefined;
  states?: readonly HoldState[] | undefined;
  limit: number;
}

/** Suspensions and temporary ranks. They begin and end with rank changes, in `ChangeStore`. */
export interface HoldStore {
  /** The hold with this id, even an ended one; `undefined` if none is stored. */
  findHold(id: string): Promise<Hold | undefined>;
  /** Newest first. */
  listHolds(filter: HoldFilter): Promise<Hold[]>;
  /**
   * The active or stuck holds whose end and next try are due at `now` (epoch milliseconds), earliest end first.
   * `retryNow` ignores the time of the next try.
   */
  dueHolds(query: { group: string; now: number; retryNow: boolean; limit: number }): Promise<Hold[]>;
  /**
   * Updates an active or stuck hold, by `judge`, together with its events. `judge` is synchronous and pure, and may run
   * more than once. Resolves with the stored hold; `undefined` if it is in another state.
   */
  updateHold(id: string, judge: (hold: Hold) => HoldUpdate): Promise<Hold | undefined>;
}

/** An Idempotency-Key of a request. Each API key has separate ones in each group. */
export interface IdempotencySlot {
  keyId: string;
  idempotencyKey: string;
  group: string;
}

export interface IdempotencyClaim extends IdempotencySlot {
  /** A hash of the request: two requests with the same fingerprint are the same. */
  fingerprint: string;
  /** Changes from before this time do not count (epoch milliseconds). */
  since: number;
}

/**
 * The state of an Idempotency-Key when it was claimed. `change` is the one that it already identifies, in any state.
 */
export type IdempotencyStanding =
  | { is: 'claimed' }
  | { is: 'running'; fingerprint: string }
  | { is: 'used'; change: RankChange };

/**
 * The requests with an Idempotency-Key that are in flight. When a node ends, its claims end with it. A claim of a live
 * node without a request, because its release failed or its answer was lost, is free as soon as the store responds.
 */
export interface IdempotencyStore {
  /**
   * Claims the key for a request of this handle, unless it already identifies a change, or another request has claimed
   * it at any handle. Of several concurrent claims, one succeeds.
   */
  claimIdempotencyKey(claim: IdempotencyClaim): Promise<IdempotencyStanding>;
  /** Releases a claim of this handle. */
  releaseIdempotencyKey(slot: IdempotencySlot): Promise<void>;
}
