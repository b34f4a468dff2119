import type { BeginFacts, BeginVerdict, MemberWindow } from '../core/begin.ts';
import type { ChangeUpdate } from '../core/change-state.ts';
import type { DomainEvent } from '../core/events.ts';
import type { HoldsOfMember, HoldUpdate } from '../core/holds.ts';
import type { ChangeState, Hold, HoldState, RankChange } from '../core/model.ts';

/** Which changes are meant. Without any field, it is all of them. */
export interface ChangeSelection {
  /** Only changes in this group, as its changes name it. */
  group?: string | undefined;
  /** Only the changes with these ids. */
  ids?: readonly string[] | undefined;
  rankeeId?: number | undefined;
  /**
   * Only changes of members whose name begins so, in any case: the name that the caller gave, or the one that is kept of the member
   * (`PersonStore.keepUserName`). It has letters, digits and underscores alone.
   */
  rankeeName?: string | undefined;
  rankerId?: number | undefined;
  keyId?: string | undefined;
  placeId?: number | undefined;
  /**
   * The actor in the history: `key:<id>` or `cli:<user>@<host>`. The part before the colon alone includes all of them:
   * `cli` is every operator.
   */
  by?: string | undefined;
  undoId?: string | undefined;
  states?: ChangeState[] | undefined;
  /** Only changes that were asked for at this time or later (epoch milliseconds). */
  since?: number | undefined;
  /** Only changes that were asked for before this time (epoch milliseconds). */
  until?: number | undefined;
}

export interface ChangeFilter extends ChangeSelection {
  limit: number;
}

/** A stretch of the history, newest first. */
export interface ChangePage {
  changes: RankChange[];
  /** The cursor of the next page; absent if there is none. It means something to the store alone. */
  next?: string;
}

/** How many changes a key, or the operator, asked for that stand so. */
export interface ChangeTally {
  /** Absent for changes by the operator. */
  keyId?: string;
  state: ChangeState;
  /** As in `RankChange`. */
  demotion: boolean;
  /** True if they were applied and left the roles as they were: the members had the rank already. */
  isQuiet: boolean;
  count: number;
}

/** An open change (pending or unknown), and who works on it. */
export interface OpenChange {
  change: RankChange;
  /** `this`: this handle · `other`: another node that is alive · `none`: nobody, or a node that is known to be gone. */
  holder: 'this' | 'other' | 'none';
}

/** The question to the store when a change begins, in addition to the change's own fields. */
export interface BeginQuestion {
  /** The secret that the request came with. */
  secretId?: string | undefined;
  /** The windows for which changed members are to be counted. */
  windows: readonly MemberWindow[];
}

/** Says what becomes of a change, and of the holds of its member, as they are kept. */
export type JudgeChange = (kept: { change: RankChange; holds: HoldsOfMember }) => ChangeUpdate;

/**
 * The history of rank changes.
 *
 * An open change has a holder: the node that works on it. A node is a handle on the store, from when it is opened until it is
 * closed or its process ends, however that ends. No method compares wall clocks to tell whether a node is alive.
 */
export interface ChangeStore {
  /**
   * Keeps a change that ended without a write (refused, failed or dry run) together with its events; or one that is unknown and that the
   * store has lost, without a holder.
   * Throws `conflict` if the id is taken, or if the idempotency key stands for another change of the last 24 hours.
   */
  recordChange(change: RankChange, events: readonly DomainEvent[]): Promise<void>;
  /**
   * Gathers the facts, has `judge` judge them, and carries its verdict out, all in one transaction: no other handle can begin or
   * end a change, and none can change a key, its places or the workspace, between the facts and the verdict. `judge` is
   * synchronous and pure; it may run more than once. If the verdict is `begin`, the change is kept: with this handle as its
   * holder if its state is `pending`; without one if it has ended already, because there is nothing to write. The holds of the verdict are kept
   * with it. Resolves with the verdict. Throws `conflict` as `recordChange`.
   */
  beginChange(
    change: RankChange,
    question: BeginQuestion,
    judge: (facts: BeginFacts) => BeginVerdict,
  ): Promise<BeginVerdict>;
  /**
   * Changes an open change that this handle holds, as `judge` says, together with the member's holds and the events. `judge` gets them as
   * they are kept; it is synchronous and pure, and may run more than once. Resolves with what is kept now; `undefined` if the change is not
   * open, or if this handle does not hold it.
   */
  updateChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Opens a change that has ended again, as `judge` says, together with the member's holds and the events, unless another change of the member came after it.
   * `judge` is as that of `updateChange`. Nobody holds the change then. Resolves with what is kept now; `undefined` if nothing was done.
   */
  reopenChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Makes this handle the holder of an open change, by compare and set: of all handles that try at once, one succeeds. Resolves
   * with the change as it is kept; `undefined` if it is not open, or if another node that is alive holds it.
   */
  takeOver(changeId: string): Promise<RankChange | undefined>;
  /** Gives up an open change that this handle holds, so that any node can take it over. Does nothing if this handle does not hold it. */
  release(changeId: string): Promise<void>;
  /** True as long as this handle holds the open change. */
  holds(changeId: string): Promise<boolean>;
  /**
   * How much longer the node that this handle is now may write to the platform for what it holds, in milliseconds, whenever that is asked:
   * 0 once it has ended. `Infinity` if nobody takes over from a node that is only slow.
   */
  leaseLeft(): () => number;
  /** The change with this id, whatever became of it; `undefined` if none is kept. */
  findChange(id: string): Promise<RankChange | undefined>;
  /** The member's newest change in any state, and the open one if there is one. */
  latestChange(rankeeId: number): Promise<{ latestId?: string; open?: OpenChange }>;
  /** When a change of this member was last applied (epoch milliseconds); dry runs and quiet repetitions do not count. */
  lastAppliedAt(rankeeId: number): Promise<number | undefined>;
  /** The member's newest finished change that left other roles than before or was put back; dry runs do not count. */
  lastWritten(rankeeId: number): Promise<RankChange | undefined>;
  /**
   * When this ranker last changed anybody (epoch milliseconds). A change that is open counts from when it was asked for; dry runs
   * and quiet repetitions do not count.
   */
  lastChangedSomebodyAt(rankerId: number): Promise<number | undefined>;
  /** Newest first. */
  listChanges(filter: ChangeFilter): Promise<RankChange[]>;
  /**
   * A page of the history: the first one, or the one that `cursor` of the page before names. No change is left out or told twice
   * if new ones arrive meanwhile.
   */
  pageChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * As `pageChanges`, for a person who waits: each page is quick, however long the history is and whatever is searched for. So it may
   * hold fewer changes than `limit`, or none, although there is a next one. Among all pages each change is told once, newest first: by
   * arrival or, where a time is asked for, by the time at which they were asked for. A cursor can come from anybody; one that no page gave leads nowhere.
   */
  searchChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * Counts the changes that were asked for from `since` on and before `until` (epoch milliseconds) in a group. Dry runs do not count.
   */
  tallyChanges(query: { group: string; since: number; until: number }): Promise<ChangeTally[]>;
  /** How many changes were asked for since a moment (epoch milliseconds), by their state; only in a group, if one is named. Dry runs do not count. */
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
  /** The hold with this id, also one that is over; `undefined` if none is kept. */
  findHold(id: string): Promise<Hold | undefined>;
  /** Newest first. */
  listHolds(filter: HoldFilter): Promise<Hold[]>;
  /**
   * The holds that are active or stuck and whose end and next try are due at `now` (epoch milliseconds), those that end first at the head.
   * With `retryNow`, no next try is waited for.
   */
  dueHolds(query: { group: string; now: number; retryNow: boolean; limit: number }): Promise<Hold[]>;
  /**
   * Changes a hold that is active or stuck, as `judge` says, together with its events. `judge` is synchronous and pure, and may run
   * more than once. Resolves with the hold as it is kept now; `undefined` if it is in another state.
   */
  updateHold(id: string, judge: (hold: Hold) => HoldUpdate): Promise<Hold | undefined>;
}

/** An Idempotency-Key as a request brings it. In each group, a key of the API has its own. */
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

/** How an Idempotency-Key stood when it was claimed. `change` is the one that it already stands for, in whatever state. */
export type IdempotencyStanding =
  | { is: 'claimed' }
  | { is: 'running'; fingerprint: string }
  | { is: 'used'; change: RankChange };

/**
 * The requests with an Idempotency-Key that are in flight. When a node ends, its claims end with it. A claim of a live node that no request in
 * its process holds, because its release failed or its answer was lost, is free as soon as the store answers.
 */
export interface IdempotencyStore {
  /**
   * Claims the key for a request of this handle, unless it stands for a change already, or another request has claimed it, here or at any
   * other handle. Of all that claim it at once, one succeeds.
   */
  claimIdempotencyKey(claim: IdempotencyClaim): Promise<IdempotencyStanding>;
  /** Gives back a claim of this handle. */
  releaseIdempotencyKey(slot: IdempotencySlot): Promise<void>;
}
