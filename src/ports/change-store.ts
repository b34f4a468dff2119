import type { BeginFacts, BeginVerdict, MemberWindow } from '../core/begin.ts';
import type { ChangeUpdate } from '../core/change-state.ts';
import type { DomainEvent } from '../core/events.ts';
import type { HoldsOfMember, HoldUpdate } from '../core/holds.ts';
import type { ChangeState, Hold, HoldState, RankChange } from '../core/model.ts';

/** Selects the changes that match every given field. */
export interface ChangeSelection {
  group?: string | undefined;
  ids?: readonly string[] | undefined;
  rankeeId?: number | undefined;
  /**
   * A prefix of the member's name, ignoring case: either the name that the caller gave or the stored one
   * (`PersonStore.storeUserName`). Contains only letters, digits and underscores.
   */
  rankeeName?: string | undefined;
  rankerId?: number | undefined;
  keyId?: string | undefined;
  placeId?: number | undefined;
  /** A `RankChange.by`, or the part before its colon: `cli` matches every operator in a shell. */
  by?: string | undefined;
  undoId?: string | undefined;
  states?: ChangeState[] | undefined;
  /** Matches changes requested at or after this time (epoch milliseconds). */
  since?: number | undefined;
  /** Matches changes requested before this time (epoch milliseconds). */
  until?: number | undefined;
}

export interface ChangeFilter extends ChangeSelection {
  limit: number;
}

export interface ChangePage {
  changes: RankChange[];
  /** The cursor for the next page; absent on the last page. Opaque to callers. */
  next?: string;
}

/** The number of changes (`count`) that share the values of the other fields. */
export interface ChangeTally {
  keyId?: string;
  state: ChangeState;
  demotion: boolean;
  /** True for applied changes that did not alter the rank, such as the addition of an extra role. */
  isQuiet: boolean;
  count: number;
}

/** A change that is pending or unknown, and its holder. */
export interface OpenChange {
  change: RankChange;
  /** `this`: this handle's node · `other`: another live node · `none`: no node, or a dead one. */
  holder: 'this' | 'other' | 'none';
}

/** Determines, together with the change itself, the facts that `beginChange` passes to its judge. */
export interface BeginQuestion {
  secretId?: string | undefined;
  windows: readonly MemberWindow[];
}

export type JudgeChange = (stored: { change: RankChange; holds: HoldsOfMember }) => ChangeUpdate;

/**
 * The history of rank changes.
 *
 * An open change's holder is the node that is working on it. Each open handle on the store is a node, which is alive
 * until the handle is closed, its process exits or, with PostgreSQL, its heartbeats stop. No method compares wall
 * clocks to decide whether a node is alive. `Store` describes how a `judge` is used.
 */
export interface ChangeStore {
  /**
   * Stores a change and its events without making this handle its holder. The change has ended without a write,
   * corrects one that another node ended, or is an unknown change whose record the store has lost. Throws `conflict` if
   * the id exists, if the change is open and the member has another open change, or if another change in the last 24
   * hours has the same idempotency key.
   */
  recordChange(change: RankChange, events: readonly DomainEvent[]): Promise<void>;
  /**
   * Reads the facts, passes them to `judge` and stores its verdict, all in one transaction: between the read and the
   * write, no other handle can begin or end a change, or alter a key, its places or the workspace. Stores the verdict's
   * events and, if the verdict is `begin`, the change and the holds; if the change is `pending`, this handle becomes
   * its holder. A change that needs no writes is stored as ended, without a holder. If a refusal has a `pause`, pauses
   * the key. Resolves with the verdict. Throws `conflict` in the same cases as `recordChange`.
   */
  beginChange(
    change: RankChange,
    question: BeginQuestion,
    judge: (facts: BeginFacts) => BeginVerdict,
  ): Promise<BeginVerdict>;
  /**
   * Updates an open change that this handle holds, and the member's holds. Resolves with the stored change, or with
   * `undefined` if the change is not open or this handle does not hold it.
   */
  updateChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Reopens an ended change without making this handle its holder. Resolves with the stored change, or with `undefined`
   * if it is not the member's newest change or the member has an open one.
   */
  reopenChange(changeId: string, judge: JudgeChange): Promise<RankChange | undefined>;
  /**
   * Makes this handle the holder of an open change, by compare-and-set: if several handles try at once, only one
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
   * Returns a function that reports the time left in the lease of this handle's current node, in milliseconds: 0 once
   * that node has ended, `Infinity` if the engine never declares a slow node dead.
   */
  leaseLeft(): () => number;
  findChange(id: string): Promise<RankChange | undefined>;
  /** Returns the id of the member's newest change, whatever its state, and the member's open change. */
  latestChange(rankeeId: number): Promise<{ latestId?: string; open?: OpenChange }>;
  /**
   * Returns the end time (epoch milliseconds) of the last change that was applied to the member's roles, ignoring dry
   * runs.
   */
  lastAppliedAt(rankeeId: number): Promise<number | undefined>;
  /**
   * Returns the member's newest ended change that has, or may have, altered roles on the platform, ignoring dry runs.
   */
  lastWritten(rankeeId: number): Promise<RankChange | undefined>;
  /**
   * Returns the end time (epoch milliseconds) of the last change of roles that this ranker requested, or its request
   * time if it is still open. Ignores dry runs, and changes that were refused or failed.
   */
  lastRankedOthersAt(rankerId: number): Promise<number | undefined>;
  /** Returns changes, newest first. */
  listChanges(filter: ChangeFilter): Promise<RankChange[]>;
  /**
   * Returns the first page of the history, or the page after `cursor`. Changes that arrive between two calls cause no
   * gaps or duplicates.
   */
  pageChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * Returns a page of the history in bounded time, whatever the filter and the length of the history. A page can
   * therefore contain fewer than `limit` changes, or none, even if more pages follow. Across all pages, each selected
   * change appears once, newest first, in order of arrival or, if the filter has a time, of request time. Returns an
   * empty page for an invalid cursor.
   */
  searchChanges(filter: ChangeFilter & { cursor?: string | undefined }): Promise<ChangePage>;
  /**
   * Counts a group's changes that were requested at or after `since` and before `until` (epoch milliseconds), ignoring
   * dry runs.
   */
  tallyChanges(query: { group: string; since: number; until: number }): Promise<ChangeTally[]>;
  /** Counts the changes requested at or after `since` (epoch milliseconds), grouped by state and ignoring dry runs. */
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

/**
 * Suspensions and temporary ranks. The methods of `ChangeStore` begin and end them together with rank changes.
 * `updateHold` can also end one without a rank change, for example if the member has left.
 */
export interface HoldStore {
  findHold(id: string): Promise<Hold | undefined>;
  /** Returns holds, newest first. */
  listHolds(filter: HoldFilter): Promise<Hold[]>;
  /**
   * Returns at most `limit` active or stuck holds, earliest end first, whose end and next attempt are both due at `now`
   * (epoch milliseconds). With `retryNow`, ignores when the next attempt is due.
   */
  dueHolds(query: { group: string; now: number; retryNow: boolean; limit: number }): Promise<Hold[]>;
  /**
   * Updates an active or stuck hold. Resolves with the stored hold, or with `undefined` if the hold is neither active
   * nor stuck.
   */
  updateHold(id: string, judge: (hold: Hold) => HoldUpdate): Promise<Hold | undefined>;
}

/** Identifies a request by its Idempotency-Key, which has to be unique only within one API key and one group. */
export interface IdempotencySlot {
  keyId: string;
  idempotencyKey: string;
  group: string;
}

export interface IdempotencyClaim extends IdempotencySlot {
  /** A hash of the request, to detect that the key is reused for a different request. */
  fingerprint: string;
  /** Changes requested before this time (epoch milliseconds) no longer count as uses of the key. */
  since: number;
}

/** `running`: another request has claimed the key. `used`: the key belongs to `change`, whatever its state. */
export type IdempotencyState =
  | { is: 'claimed' }
  | { is: 'running'; fingerprint: string }
  | { is: 'used'; change: RankChange };

/**
 * Claims on the Idempotency-Keys of requests in flight. When a node ends, so do its claims. If a live node fails to
 * release a claim, or does not receive the response to one, the key is freed soon after the store responds again.
 */
export interface IdempotencyStore {
  /**
   * Claims the key for a request, unless a change already has it or another request, on any handle, has claimed it.
   * Only one of several concurrent claims succeeds.
   */
  claimIdempotencyKey(claim: IdempotencyClaim): Promise<IdempotencyState>;
  releaseIdempotencyKey(slot: IdempotencySlot): Promise<void>;
}
