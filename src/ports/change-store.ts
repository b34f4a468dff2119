import type { BeginFacts, BeginVerdict, MemberWindow } from '../core/begin.ts';
import type { ChangeUpdate } from '../core/change-state.ts';
import type { DomainEvent } from '../core/events.ts';
import type { HoldsOfMember, HoldUpdate } from '../core/holds.ts';
import type { ChangeState, Hold, HoldState, RankChange } from '../core/model.ts';

/** Selects changes. Without any field, it selects all of them. */
export interface ChangeSelection {
  /** Only changes with this `RankChange.group`. */
  group?: string | undefined;
  ids?: readonly string[] | undefined;
  rankeeId?: number | undefined;
  /**
   * Only changes to members whose name starts with this prefix, ignoring case: the name that the caller gave, or the
   * stored name (`PersonStore.storeUserName`). The prefix has only letters, digits and underscores.
   */
  rankeeName?: string | undefined;
  rankerId?: number | undefined;
  keyId?: string | undefined;
  placeId?: number | undefined;
  /**
   * Only changes with this `RankChange.by`. The part before the colon selects all actors of that kind: `cli` selects
   * every operator in a shell.
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
  /** The cursor for the next page; absent if there is none. Only the store can interpret it. */
  next?: string;
}

/** The number (`count`) of changes that have these values in the other fields. */
export interface ChangeTally {
  /** Absent for changes without a key. */
  keyId?: string;
  state: ChangeState;
  /** See `RankChange.demotion`. */
  demotion: boolean;
  /** True for applied changes that left the rank unchanged, such as a change to an extra role. */
  isQuiet: boolean;
  count: number;
}

/** An open change (pending or unknown), and its holder. */
export interface OpenChange {
  change: RankChange;
  /** `this`: this handle's node · `other`: another live node · `none`: no node, or a dead one. */
  holder: 'this' | 'other' | 'none';
}

/** Selects, together with the change's fields, the facts that `beginChange` passes to its judge. */
export interface BeginQuestion {
  /** The id of the key's secret that the request used. */
  secretId?: string | undefined;
  /** The time windows for counting changed members. */
  windows: readonly MemberWindow[];
}

/** Returns the new state of a stored change and of its member's holds. */
export type JudgeChange = (stored: { change: RankChange; holds: HoldsOfMember }) => ChangeUpdate;

/**
 * The history of rank changes.
 *
 * The holder of an open change is the node that is working on it. A node is a handle on the store; it ends when the
 * handle is closed or its process ends. No method compares wall clocks to decide whether a node is alive.
 */
export interface ChangeStore {
  /**
   * Stores a change without a holder, together with its events: a change that ended without a write, a correction of a
   * change that another node ended, or an unknown change whose record the store has lost. Throws `conflict` if the id
   * exists, if the change is open and the member has another open one, or if another change in the last 24 hours has
   * the same idempotency key.
   */
  recordChange(change: RankChange, events: readonly DomainEvent[]): Promise<void>;
  /**
   * Reads the facts, passes them to `judge`, and stores its verdict, all in one transaction: between the facts and the
   * verdict, no other handle can begin or end a change, or change a key, its places or the workspace. `judge` is
   * synchronous and pure, and may run more than once. If the verdict is `begin`, stores the change and the verdict's
   * holds, and makes this handle the holder of a `pending` change. A change without writes is stored as ended, without
   * a holder. Resolves with the verdict. Throws `conflict` in the same cases as `recordChange`.
   */
  beginChange(
    change: RankChange,
    question: BeginQuestion,
    judge: (facts: BeginFacts) => BeginVerdict,
  ): Promise<BeginVerdict>;
  /**
   * Updates an open change that this handle holds, and the member's holds, as `judge` decides, together with the
   * judge's events. `judge` is synchronous and pure, and may run more than once. Resolves with the stored change, or
   * with `undefined` if the change is not open or this handle does not hold it.
   */
  updateChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Reopens an ended change as `judge` decides (see `updateChange`), without making this handle its holder. Resolves
   * with the stored change, or with `undefined` if it is not the member's newest change, or if the member has an open
   * one.
   */
  reopenChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Makes this handle the holder of an open change, by compare-and-set: only one of several concurrent attempts
   * succeeds. Resolves with the stored change, or with `undefined` if the change is not open or another live node holds
   * it.
   */
  takeOver(changeId: string): Promise<RankChange | undefined>;
  /**
   * Releases an open change that this handle holds, so that any node can take it over. Does nothing if this handle does
   * not hold it.
   */
  release(changeId: string): Promise<void>;
  /** Resolves with true if this handle holds the open change and its lease has not expired. */
  holds(changeId: string): Promise<boolean>;
  /**
   * Returns a function for this handle's current node, which returns the time left in the node's lease, in
   * milliseconds: 0 once the node has ended, `Infinity` if the engine never declares a slow node dead.
   */
  leaseLeft(): () => number;
  /** Returns the change with this id, in any state, or `undefined`. */
  findChange(id: string): Promise<RankChange | undefined>;
  /** Returns the id of the member's newest change in any state, and the open change if there is one. */
  latestChange(rankeeId: number): Promise<{ latestId?: string; open?: OpenChange }>;
  /**
   * Returns the time at which the last applied change to the member's roles ended (epoch milliseconds), ignoring dry
   * runs.
   */
  lastAppliedAt(rankeeId: number): Promise<number | undefined>;
  /** Returns the member's newest ended change that changed roles or was compensated, ignoring dry runs. */
  lastWritten(rankeeId: number): Promise<RankChange | undefined>;
  /**
   * Returns the time at which the last change of roles that this ranker requested ended (epoch milliseconds), or its
   * request time if it is open. Ignores dry runs, and changes that were refused or failed.
   */
  lastRankedOthersAt(rankerId: number): Promise<number | undefined>;
  /** Returns changes, newest first. */
  listChanges(filter: ChangeFilter): Promise<RankChange[]>;
  /**
   * Returns the first page of the history, or the one after `cursor`. New changes cause no gaps or duplicates.
   */
  pageChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * Returns a page of the history within bounded time, whatever the filter and the length of the history. A page can
   * therefore have fewer changes than `limit`, or none, even if more pages follow. Across all pages, each selected
   * change appears once, newest first: by arrival, or by request time if the filter has a time. Returns an empty page
   * for an invalid cursor.
   */
  searchChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * Counts the changes in a group that were requested at or after `since` and before `until` (epoch milliseconds),
   * ignoring dry runs.
   */
  tallyChanges(query: { group: string; since: number; until: number }): Promise<ChangeTally[]>;
  /**
   * Counts the changes requested at or after `since` (epoch milliseconds) by state, ignoring dry runs. With `group`,
   * counts only that group's changes.
   */
  countChanges(since: number, group?: string): Promise<Record<ChangeState, number>>;
  /** Returns all open changes, oldest first. */
  openChanges(): Promise<OpenChange[]>;
}

export interface HoldFilter {
  group: string;
  rankeeId?: number | undefined;
  states?: readonly HoldState[] | undefined;
  limit: number;
}

/** Suspensions and temporary ranks. `ChangeStore` begins and ends them together with rank changes. */
export interface HoldStore {
  /** Returns the hold with this id, even if it has ended, or `undefined`. */
  findHold(id: string): Promise<Hold | undefined>;
  /** Returns holds, newest first. */
  listHolds(filter: HoldFilter): Promise<Hold[]>;
  /**
   * Returns at most `limit` active and stuck holds whose end and next attempt are due at `now` (epoch milliseconds),
   * earliest end first. With `retryNow`, ignores the time of the next attempt.
   */
  dueHolds(query: { group: string; now: number; retryNow: boolean; limit: number }): Promise<Hold[]>;
  /**
   * Updates an active or stuck hold as `judge` decides, and stores the judge's events with it. `judge` is synchronous
   * and pure, and may run more than once. Resolves with the stored hold, or with `undefined` if the hold is neither
   * active nor stuck.
   */
  updateHold(id: string, judge: (hold: Hold) => HoldUpdate): Promise<Hold | undefined>;
}

/** Identifies a request by its Idempotency-Key, which need only be unique within one API key and group. */
export interface IdempotencySlot {
  keyId: string;
  idempotencyKey: string;
  group: string;
}

export interface IdempotencyClaim extends IdempotencySlot {
  /** A hash of the request: equal requests have the same fingerprint. */
  fingerprint: string;
  /** Changes requested before this time (epoch milliseconds) do not use up the key. */
  since: number;
}

/** The result of a claim. `running`: another request has claimed the key. `used`: `change` has it, in any state. */
export type IdempotencyStanding =
  | { is: 'claimed' }
  | { is: 'running'; fingerprint: string }
  | { is: 'used'; change: RankChange };

/**
 * Claims on the Idempotency-Keys of requests in flight. When a node ends, its claims end with it. If a live node's
 * release fails, or the response to its claim is lost, the key is free again soon after the store responds.
 */
export interface IdempotencyStore {
  /**
   * Claims the key for a request, unless a change already has it, or another request on any handle has claimed it. Only
   * one of several concurrent claims succeeds.
   */
  claimIdempotencyKey(claim: IdempotencyClaim): Promise<IdempotencyStanding>;
  /** Releases a claim that this handle made. */
  releaseIdempotencyKey(slot: IdempotencySlot): Promise<void>;
}
