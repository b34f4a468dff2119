import type { ErrorCode } from '../base/errors.ts';
import type { ChangeState, RankChange } from '../core/model.ts';

/** Which changes; without anything, all of them. */
export interface ChangeSelection {
  /** Made in this group, as its changes name it. */
  group?: string | undefined;
  rankeeId?: number | undefined;
  rankerId?: number | undefined;
  keyId?: string | undefined;
  placeId?: number | undefined;
  /** As the history names who asked, `key:<id>` or `cli:<user>@<host>`; also what is before the colon: `cli` is every operator. */
  by?: string | undefined;
  undoId?: string | undefined;
  states?: ChangeState[] | undefined;
  /** When it was asked for: epoch milliseconds, included. */
  since?: number | undefined;
  /** When it was asked for: epoch milliseconds, not included. */
  until?: number | undefined;
}

export interface ChangeFilter extends ChangeSelection {
  limit: number;
}

/** A stretch of the history, newest first. */
export interface ChangePage {
  changes: RankChange[];
  /** Where the next page begins; absent where there is none. */
  next?: number;
}

/** How a change ended, or that it is not known yet. */
export interface ChangeOutcome {
  state: Exclude<ChangeState, 'pending'>;
  code: ErrorCode | null;
  message: string;
  /** Roles seen at the end; absent while that is unknown: then the wanted ones stay. */
  rolesAfter?: number[] | undefined;
  /** Release the idempotency key, so that a repeat is tried anew. */
  forgetIdempotencyKey?: boolean;
}

/** How many different members may be changed in a way since a moment (epoch milliseconds), by one key and over all keys. */
export interface MemberLimit {
  /** Demotions, or any change of a member who holds, or is to hold, this rank or one above. */
  of: 'demotions' | { fromRank: number };
  since: number;
  byKey: number;
  byAll: number;
}

/** What is looked at once more when a change begins: much can have come between since it was decided. */
export interface BeginConditions {
  /** The member's newest change when the member was read. */
  after: string | undefined;
  limits?: MemberLimit[];
  rankerCooldownMs?: number;
}

export interface ChangeStore {
  /** Keeps a change that ended without a write: refused, failed, quiet repetition or dry run. */
  recordChange(change: RankChange): Promise<void>;
  /**
   * Keeps the intent (`state` pending) before the first write. False where the member has an open change, or a newer one
   * than `after`: what was read of the member since may be stale. Throws as the key is refused where it, its place or the
   * workspace was shut out meanwhile, `key_paused` where it is paused, or goes beyond one of `limits` and is paused now (then
   * `details.pausedNow` is true), and `cooldown` where the ranker's own is not over.
   */
  beginChange(change: RankChange, conditions: BeginConditions): Promise<boolean>;
  /** The change will now be put back, for this reason: kept before the first write of the roll-back. */
  markRollBack(changeId: string, why: { code: ErrorCode; message: string }): Promise<void>;
  /** Ends an open change; false where it was no longer open (somebody else settled it). */
  finishChange(changeId: string, outcome: ChangeOutcome): Promise<boolean>;
  findChange(id: string): Promise<RankChange | undefined>;
  findChangeByIdempotencyKey(query: {
    keyId: string;
    idempotencyKey: string;
    group: string;
    since: number;
  }): Promise<RankChange | undefined>;
  /** The member's newest change in any state, and the open one (pending or unknown) if there is one. */
  latestChange(rankeeId: number): Promise<{ latestId?: string; open?: RankChange }>;
  /** When a change of this member was last applied; dry runs and quiet repetitions do not count. */
  lastAppliedAt(rankeeId: number): Promise<number | undefined>;
  /** The member's newest finished change that left other roles than before or was put back; dry runs do not count. */
  lastWritten(rankeeId: number): Promise<RankChange | undefined>;
  /**
   * When this ranker last changed anybody; a change that is open counts from its beginning, dry runs and quiet repetitions
   * do not count.
   */
  lastChangedSomebodyAt(rankerId: number): Promise<number | undefined>;
  /** Newest first. */
  listChanges(filter: ChangeFilter): Promise<RankChange[]>;
  /** A page of the history that begins at `from`, as the page before it named that. */
  pageChanges(filter: ChangeFilter & { from?: number }): Promise<ChangePage>;
  /** How many were asked for since a moment (epoch milliseconds), by how they stand; dry runs do not count. */
  countChanges(since: number): Promise<Record<ChangeState, number>>;
  /** Every pending or unknown change, oldest first. */
  openChanges(): Promise<RankChange[]>;
}
