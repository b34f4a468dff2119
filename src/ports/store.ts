import type { Clock } from '../base/clock.ts';
import type { RankdError } from '../base/errors.ts';
import type { AuditMention, AuditRow, ChainLink, EmptiedMention } from '../core/audit.ts';
import type { DomainEvent } from '../core/events.ts';
import type { Forgetting, Mentions, WithoutPerson } from '../core/forgetting.ts';
import type { AuditEvent, Role, WhitelistEntry, Workspace } from '../core/model.ts';
import type { RoleMeaning } from '../core/role-settings.ts';
import type { Verdict } from '../core/verdict.ts';
import type { JudgeEntries } from '../core/whitelist.ts';
import type { BudgetStore } from './budget-ledger.ts';
import type { ChangeStore } from './change-store.ts';
import type { HoldStore } from './hold-store.ts';
import type { IdempotencyStore } from './idempotency-store.ts';
import type { KeyStore } from './key-store.ts';
import type { LimitStore } from './limit-store.ts';
import type { NodeStore } from './node-store.ts';
import type { WebhookStore } from './webhook-store.ts';

export type * from './change-store.ts';
export type * from './hold-store.ts';
export type * from './idempotency-store.ts';
export type * from './key-store.ts';
export type * from './limit-store.ts';
export type * from './node-store.ts';
export type * from './webhook-store.ts';

/**
 * Everything rankd remembers. Every method that writes is one durable transaction: it resolves once what it wrote is safe, and
 * then every other handle reads it. What is not found is `undefined`.
 *
 * Two methods that write never interleave. What a method reads before it writes, and what its `judge` gets, holds until it has
 * written.
 *
 * Every method throws `store_unavailable` if the store can't be read or written; then nothing was written.
 */
export interface Store
  extends WorkspaceStore,
    KeyStore,
    WhitelistStore,
    ChangeStore,
    MemberQueueStore,
    IdempotencyStore,
    HoldStore,
    GroupStore,
    AuditStore,
    RetentionStore,
    PersonStore,
    WebhookStore,
    BudgetStore {
  /** The daemons that share this store; `undefined` if one alone can work on it, as with SQLite. */
  readonly nodes: NodeStore | undefined;
  /** What is counted for all of them together; `undefined` if there is one. */
  readonly limits: LimitStore | undefined;
  /** The time that all who work with this store go by. */
  readonly clock: Clock;
  /** Why this rankd can't work with the store any more: a later one has migrated it. A daemon then finishes what runs and stops. */
  outgrown(): RankdError | undefined;
  /** Resolves if the store answers and is still the one that was opened. */
  ping(): Promise<void>;
  /** Resolves if the store answers, is still the one that was opened, and takes writes; a daemon that shares it also has its lease. */
  pingWrites(): Promise<void>;
  close(): Promise<void>;
}

export interface WorkspaceStore {
  /** The one workspace. A new store has it active and on the top plan. */
  getWorkspace(): Promise<Workspace>;
  /** Changes it as `judge` says, with its events. `judge` is synchronous and pure, and may run more than once. */
  updateWorkspace(judge: (workspace: Workspace) => Verdict<Workspace>): Promise<Workspace>;
}

export interface WhitelistStore {
  /** The entries of this key, or of all keys, ascending by place. */
  listEntries(filter: { keyId?: string }): Promise<WhitelistEntry[]>;
  /**
   * Changes the whitelist of a key as `judge` says, with its events. `judge` gets the entries of these places that there are, in
   * the order of the places; it is synchronous and pure, and may run more than once. Throws `not_found` if there is no such key,
   * and the refusal of `judge`: then nothing is changed.
   */
  updateEntries(
    places: { keyId: string; placeIds: readonly number[] },
    judge: JudgeEntries,
  ): Promise<{ before: WhitelistEntry[]; after: WhitelistEntry[] }>;
}

/**
 * The queue of those who want to change a member, first come, first served over all nodes. Each node keeps the order of its own
 * changes by itself. When a node ends, its positions in all queues end with it. A position that could not be left is given up within seconds
 * once the store answers.
 */
export interface MemberQueueStore {
  /** Joins the end of a member's queue: whoever joins later, on another node, waits. Resolves with the position in it. */
  enqueue(rankeeId: number): Promise<string>;
  /** Gives a position up; nothing happens if it is given up already. */
  leave(position: string): Promise<void>;
  /**
   * Calls `onMove` when somebody left a member's queue, or ended a change of the member, as far as this handle is told, until it is disposed. It
   * only wakes earlier who looks now and then anyway. `undefined` if nobody tells, as with SQLite.
   */
  watchQueue(rankeeId: number, onMove: () => void): Disposable | undefined;
  /**
   * `isNext`: no other node that is alive has somebody ahead of this position. Without a position, the end of the queue is meant,
   * where a change that arrives now would be.
   */
  queueStanding(query: {
    rankeeId: number;
    position?: string | undefined;
  }): Promise<{ position: string; isNext: boolean }>;
}

/** A real group whose ranks are changed with this store. */
export interface ServedGroup {
  group: string;
  /** The configuration file that named it: an absolute path. Absent if none did. */
  configFile?: string;
}

/** What rankd found out about a group and what does not change. A group is named by its title, as in `RankChange.group`. */
export interface GroupStore {
  /** The id of the group's base role; `undefined` if it is not known. */
  findBaseRole(group: string): Promise<number | undefined>;
  /** Replaces what was known before. */
  keepBaseRole(group: string, roleId: number): Promise<void>;
  /** The real group that was kept last; `undefined` if there was none. */
  findServedGroup(): Promise<ServedGroup | undefined>;
  /** Replaces what was kept before. */
  keepServedGroup(served: ServedGroup): Promise<void>;
  /** The roles that were kept last, in no order; none if there are none. */
  findRoles(group: string): Promise<KeptRole[]>;
  /** Replaces all roles of the group, for people who choose from them. Nothing else goes by them. */
  keepRoles(group: string, roles: readonly KeptRole[]): Promise<void>;
  /** The roles that the entries of settings meant when rankd read them first, in no order. */
  findMeanings(group: string): Promise<RoleMeaning[]>;
  /** Replaces all of them as `judge` says, with its events. `judge` is synchronous and pure, and may run more than once. */
  updateMeanings(group: string, judge: (kept: RoleMeaning[]) => Verdict<RoleMeaning[]>): Promise<RoleMeaning[]>;
}

export type KeptRole = Pick<Role, 'id' | 'name' | 'rank'>;

export interface AuditFilter {
  /** Epoch milliseconds, included. */
  since?: number | undefined;
  /** Epoch milliseconds, not included. */
  until?: number | undefined;
  /** The whole name, or the part before the colon: `cli` is every operator. */
  by?: string | undefined;
  /** The whole action, or the part before the dot: `key` is every `key.…`. */
  action?: string | undefined;
  subject?: string | undefined;
  /** Only events about this key, or about something that was done with it. */
  keyId?: string | undefined;
  afterId?: number;
  beforeId?: number;
  oldestFirst?: boolean;
  limit: number;
}

/** A stretch of the audit's chain as it is kept, and where the whole of it begins and ends. */
export interface ChainPage {
  /** What the first row of the chain follows. */
  anchor: ChainLink;
  /** The rows, in order of their ids. */
  rows: AuditRow[];
  /** The id of the newest row that was ever written. */
  lastId: number;
}

/** What retention removes, a step at a time: no step holds the write lock for long. */
export interface RetentionStore {
  /**
   * Looks at the oldest `limit` changes behind `cursor` and removes those that ended before `before` (epoch milliseconds), and with
   * them the holds that they began, if they are over. Open changes stay. `next` is the cursor to go on with, absent if nothing older is left.
   */
  pruneChanges(step: {
    before: number;
    cursor?: string | undefined;
    limit: number;
  }): Promise<{ removed: number; next?: string }>;
  /**
   * Removes at most `limit` events from the beginning of the chain, none behind the event `upToId`, and anchors the chain to the last
   * of them. Returns how many. Throws `conflict` where one of them is not as it was written: retention must not remove the evidence.
   */
  pruneAudit(step: { upToId: number; limit: number }): Promise<number>;
}

/** What is kept of the people on the platform. */
export interface PersonStore {
  /** How much is kept of a user, as ranker or as member, and whether a change of theirs is open. */
  mentionsOf(userId: number): Promise<Mentions>;
  /** The members of the newest changes (at most `limit`) whose callers gave no name, and of whom none was kept since then (epoch milliseconds). */
  unnamedMembers(query: { since: number; limit: number }): Promise<number[]>;
  /** The names that were kept for these users since then (epoch milliseconds), by user id. */
  userNames(userIds: readonly number[], query: { since: number }): Promise<Map<number, string>>;
  /** Keeps a name, or that the user has none, and removes all that were kept before `since`. */
  keepUserName(user: { id: number; name: string | undefined; at: number }, query: { since: number }): Promise<void>;
  /**
   * Forgets a person in one transaction: rewrites each change and hold that names the person, replaces the user id in the audit by the
   * pseudonym, removes the salts and a stored name, and adds the events of `judge`. `judge` is synchronous and pure, may run more than
   * once, and gets every mention in the audit; no other write comes between its facts and its verdict. The replaced values leave the
   * store's files once no process has them open. Throws the refusal of `judge`, with nothing changed.
   */
  forgetPerson(
    forgetting: Forgetting,
    judge: (mentions: Mentions, emptied: readonly AuditMention[]) => Verdict<WithoutPerson>,
  ): Promise<Mentions>;
}

export interface AuditStore {
  /** Adds the event at the end of the chain. */
  appendAudit(event: DomainEvent): Promise<void>;
  /** Newest first, unless asked for otherwise. */
  listAudit(filter: AuditFilter): Promise<AuditEvent[]>;
  /** At most `limit` rows after `afterId`, in order, with what the first row of all follows and the id of the newest, all of one moment. */
  auditChain(page: { afterId: number; limit: number }): Promise<ChainPage>;
  /**
   * All mentions that `forgetPerson` emptied, with the first and last id of the chain, all of one moment. The mentions outlive the events that they were in: `pruneAudit`
   * removes them only with the event that emptied them.
   */
  emptiedMentions(): Promise<{ anchorId: number; lastId: number; mentions: EmptiedMention[] }>;
}
