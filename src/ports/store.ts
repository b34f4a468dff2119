import type { Clock } from '../base/clock.ts';
import type { RankdError } from '../base/errors.ts';
import type { AuditMention, AuditRow, ChainLink, EmptiedMention } from '../core/audit.ts';
import type { StillDeclared } from '../core/declarations.ts';
import type { DeclarationClash, DeclarationFacts, DeclarationVerdict, NewDeclaration } from '../core/declared-keys.ts';
import type { DiscordPerson, JudgePerson } from '../core/discord-person.ts';
import type { DomainEvent, Verdict } from '../core/events.ts';
import type { ForgottenUser, Mentions, WithoutPerson } from '../core/forgetting.ts';
import type { JudgeKey, NewKey } from '../core/key-changes.ts';
import type { AuditEvent, ErasureRequest, Key, KeyRecord, Role, WhitelistEntry, Workspace } from '../core/model.ts';
import type { NodeStatus, SeenNode } from '../core/nodes.ts';
import type { RoleMeaning } from '../core/role-settings.ts';
import type { JudgeEntries } from '../core/whitelist.ts';
import type { ChangeStore, HoldStore, IdempotencyStore } from './change-store.ts';
import type { WebhookStore } from './webhooks.ts';

/**
 * All of rankd's records. Every method that writes runs as one transaction: once it resolves, the data is visible to
 * every other handle and survives a crash, except for queue positions, claims, counts and unaudited data such as a
 * stored base role. Lookups return `undefined` for a missing record.
 *
 * A method with a `judge` passes it the stored records, and stores the changes and events that it returns. No other
 * write can happen in between, so those records are still current. A judge is synchronous and pure, and may run more
 * than once. If it returns a `refusal`, the method stores nothing and throws it; `beginChange` differs.
 *
 * If the database can't be read or written, every method throws `store_unavailable` and stores nothing, except that a
 * write may have been stored if its commit got no response.
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
    DiscordStore,
    LoginLinkStore,
    WebhookStore,
    BudgetStore {
  /** The daemons that share this store; `undefined` if only one daemon can use it, as with SQLite. */
  readonly nodes: NodeStore | undefined;
  /** Rate limits shared by all nodes; `undefined` if only one daemon can use the store. */
  readonly limits: LimitStore | undefined;
  /** The clock that all nodes on this store share: with PostgreSQL, the server's. */
  readonly clock: Clock;
  /**
   * Returns an error once a newer version of rankd has migrated the store to a schema that this version does not
   * support. The daemon then stops.
   */
  schemaTooNew(): RankdError | undefined;
  /** Rejects if the store does not respond or is no longer the one that was opened. */
  ping(): Promise<void>;
  /**
   * Like `ping`, but also rejects if this node has lost its lease, or if an earlier write failed and a trial write
   * fails, too.
   */
  pingWrites(): Promise<void>;
  close(): Promise<void>;
}

export interface WorkspaceStore {
  /** A new store has one workspace, which is active and on the top plan. */
  getWorkspace(): Promise<Workspace>;
  /**
   * Changes the workspace's id unless a key exists, because that key's game may already use the current id. Resolves
   * with the workspace in either case.
   */
  adoptWorkspaceId(id: string): Promise<Workspace>;
  updateWorkspace(judge: (workspace: Workspace) => Verdict<Workspace>): Promise<Workspace>;
}

export interface WhitelistStore {
  /** Returns the entries of this key or, without `keyId`, of all keys, in ascending order of place id. */
  listEntries(filter: { keyId?: string }): Promise<WhitelistEntry[]>;
  /**
   * `judge` receives the existing entries for these places, in the order of `placeIds`. Throws `not_found` if there is
   * no such key.
   */
  updateEntries(
    places: { keyId: string; placeIds: readonly number[] },
    judge: JudgeEntries,
  ): Promise<{ before: WhitelistEntry[]; after: WhitelistEntry[] }>;
}

/**
 * A first-come, first-served queue for the requests to change each member, across all nodes. Each node keeps its own
 * requests in order itself. When a node ends, its positions are released. A failed release is retried within seconds
 * after the store responds again.
 */
export interface MemberQueueStore {
  /**
   * Adds a request to the end of the member's queue, and resolves with its position. Requests that other nodes enqueue
   * afterwards wait for it.
   */
  enqueue(rankeeId: number): Promise<string>;
  /** Releases a position, or does nothing if it has already been released. */
  leave(position: string): Promise<void>;
  /**
   * `isNext` is true if no other live node has a request ahead of `position`, which defaults to the end of the member's
   * queue.
   */
  queueState(query: {
    rankeeId: number;
    position?: string | undefined;
  }): Promise<{ position: string; isNext: boolean }>;
}

/** The real group that rankd manages with this store. */
export interface ServedGroup {
  group: string;
  /** The absolute path of the configuration file that names the group; absent if none does. */
  configFile?: string;
}

/** Each `group` is a group's title, as in `RankChange.group`. */
export interface GroupStore {
  findBaseRole(group: string): Promise<number | undefined>;
  storeBaseRole(group: string, roleId: number): Promise<void>;
  findServedGroup(): Promise<ServedGroup | undefined>;
  storeServedGroup(served: ServedGroup): Promise<void>;
  /** Returns the group's stored roles in no particular order. */
  findRoles(group: string): Promise<StoredRole[]>;
  /** Replaces the group's stored roles. */
  storeRoles(group: string, roles: readonly StoredRole[]): Promise<void>;
  /** Returns the roles to which rankd first resolved each entry of a setting, in no particular order. */
  findMeanings(group: string): Promise<RoleMeaning[]>;
  /** Replaces all of the group's stored meanings. */
  updateMeanings(group: string, judge: (stored: RoleMeaning[]) => Verdict<RoleMeaning[]>): Promise<RoleMeaning[]>;
}

export type StoredRole = Pick<Role, 'id' | 'name' | 'rank'>;

export interface AuditFilter {
  /** Inclusive, in epoch milliseconds. */
  since?: number | undefined;
  /** Exclusive, in epoch milliseconds. */
  until?: number | undefined;
  /** An actor, or the part before its colon: `cli` matches every operator in a shell. */
  by?: string | undefined;
  /** An action, or the part before its dot: `key` matches every `key.…` action. */
  action?: string | undefined;
  subject?: string | undefined;
  /** Matches events about this key, and events about actions performed with it. */
  keyId?: string | undefined;
  afterId?: number;
  beforeId?: number;
  oldestFirst?: boolean;
  limit: number;
}

/** A page of the stored audit chain, with the anchor and the last id of the whole chain. */
export interface ChainPage {
  /** The link that precedes the chain's first row. */
  anchor: ChainLink;
  /** In id order. */
  rows: AuditRow[];
  /** The id of the newest row ever written, even if that row has been removed. */
  lastId: number;
}

/** Removes old records in steps, so that no step holds the write lock for long. */
export interface RetentionStore {
  /**
   * Scans the oldest `limit` changes after `cursor`, and removes those that ended before `before` (epoch milliseconds).
   * Also removes holds that ended before then, if the change that began them no longer exists. `next` is the cursor for
   * the next step; absent after the last step.
   */
  pruneChanges(step: {
    before: number;
    cursor?: string | undefined;
    limit: number;
  }): Promise<{ removed: number; next?: string }>;
  /**
   * Removes at most `limit` events from the beginning of the chain, up to and including event `upToId`, and anchors the
   * chain at the last removed one. Resolves with the number of removed events. Throws `conflict` if an event was
   * altered or is missing, because retention must not destroy evidence.
   */
  pruneAudit(step: { upToId: number; limit: number }): Promise<number>;
}

export interface PersonStore {
  mentionsOf(userId: number): Promise<Mentions>;
  /**
   * Returns the ids of members who appear without a name in the newest `limit` changes, and whose names have not been
   * looked up since `since` (epoch milliseconds).
   */
  unnamedMembers(query: { since: number; limit: number }): Promise<number[]>;
  /**
   * Returns at most `limit` users with this name, ignoring case. Members of changes come first, newest change first;
   * users known only by a stored name follow.
   */
  usersNamed(name: string, query: { limit: number }): Promise<number[]>;
  /** Returns the names stored for these users at or after `since` (epoch milliseconds), keyed by user id. */
  userNames(userIds: readonly number[], query: { since: number }): Promise<Map<number, string>>;
  /**
   * Stores the result of a name lookup (`undefined` if there is no such user), and removes all names stored before
   * `since`.
   */
  storeUserName(user: { id: number; name: string | undefined; at: number }, query: { since: number }): Promise<void>;
  /**
   * Stores an erasure request, unless one with this id exists, and resolves with the stored one. `judge` receives true
   * if any record names the user.
   */
  recordErasure(
    request: Pick<ErasureRequest, 'id' | 'userId'>,
    judge: (isNamed: boolean) => Verdict<ErasureRequest>,
  ): Promise<ErasureRequest>;
  /** Returns the erasure requests that have not been carried out yet, oldest first. */
  waitingErasures(): Promise<ErasureRequest[]>;
  /**
   * Rewrites each change, hold and waiting erasure request that names the person, replaces the user id in the audit log
   * with the pseudonym, and deletes the salts, the stored name and the linked Discord users. `emptied` lists every
   * mention of the person in the audit log; `byPerson` lists the actors under which the person appears. SQLite
   * overwrites the old values in its files once no process has the files open.
   */
  forgetPerson(
    forgetting: ForgottenUser,
    judge: (
      mentions: Mentions,
      emptied: readonly AuditMention[],
      byPerson: readonly string[],
    ) => Verdict<WithoutPerson>,
  ): Promise<Mentions>;
}

/** A single-use link that logs an operator in to the dashboard. */
export interface LoginLink {
  /** The operator who created the link: `web:<user>@<host>`. */
  by: string;
  isViewOnly: boolean;
  /** The lifetime of the session, not of the link. */
  lifeMs: number;
}

export interface LoginLinkStore {
  /** Stores a link under the hash of its secret. Also removes expired links, and all but the 100 newest. */
  storeLoginLink(link: LoginLink & { hash: string; expiresAt: number }, now: number): Promise<void>;
  /** Removes and returns the link, unless it has expired. */
  takeLoginLink(hash: string, now: number): Promise<LoginLink | undefined>;
  dropLoginLinks(): Promise<void>;
}

/**
 * Discord users who have used a command or are linked to a Roblox user. `forgetPerson` removes those linked to the
 * forgotten user.
 */
export interface DiscordStore {
  findDiscordPerson(discordId: string): Promise<DiscordPerson | undefined>;
  listDiscordPeople(): Promise<DiscordPerson[]>;
  /**
   * Returns the newest Roblox name in the history for each of these users who is linked to a Discord user, keyed by
   * user id. An engine may search only each user's newest changes, so a name can be missing.
   */
  linkedNames(userIds: readonly number[]): Promise<Map<number, string>>;
  /** Adds the person if there is none with this id. */
  updateDiscordPerson(discordId: string, judge: JudgePerson): Promise<DiscordPerson>;
}

export interface AuditStore {
  /** Appends an event to the chain, with the store's current time instead of `event.at`. */
  appendAudit(event: DomainEvent): Promise<void>;
  /** Returns events, newest first unless `oldestFirst` is set. */
  listAudit(filter: AuditFilter): Promise<AuditEvent[]>;
  /** Returns the time (epoch milliseconds) of the newest backup recorded in the audit log, without scanning the log. */
  lastBackupAt(): Promise<number | undefined>;
  /** Reads at most `limit` rows after `afterId`, in order, from one snapshot. */
  auditChain(page: { afterId: number; limit: number }): Promise<ChainPage>;
  /**
   * Reads all mentions that `forgetPerson` has emptied, and the ids at both ends of the chain, from one snapshot. A
   * mention can outlive its event, because `pruneAudit` removes it only together with the `person.forget` event.
   */
  emptiedMentions(): Promise<{ anchorId: number; lastId: number; mentions: EmptiedMention[] }>;
}

export type { KeyRecord, NewSecret } from '../core/model.ts';

/** A request that was authorized with this secret, even if a rate limit then refused it. */
export interface KeyUse {
  secretId: string;
  placeId: number | undefined;
  /** Epoch milliseconds. */
  at: number;
}

export interface KeySelection {
  ids?: readonly string[];
  name?: string;
  /** Only keys created after the key with this id. */
  after?: string;
  /** Only keys that are neither revoked nor expired at this time (epoch milliseconds). */
  acceptedAt?: number;
  /** True selects only keys for a simulated group; false selects only the others. */
  isSimulated?: boolean;
  limit?: number;
}

export interface KeyStore {
  /**
   * Detects changes that any handle has made to keys, places and the workspace. Must be called before `lookUpKey`, once
   * for all requests in the same turn of the event loop. Returns `undefined` if there is nothing to wait for, as with
   * SQLite. Rejects with `store_unavailable`.
   */
  freshen(): Promise<void> | undefined;
  /**
   * Finds the key that has, or once had, a secret with this hash. The record is at least as new as the latest
   * `freshen`. Callers share the record, so they must not change it.
   */
  lookUpKey(query: { hash: string; placeId: number }): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /** `judge` receives the unrevoked key that already has the name, if there is one. */
  createKey(key: NewKey, judge: (namesake: Key | undefined) => Verdict<NewKey>): Promise<Key>;
  /**
   * Returns the key with this id or, failing that, this name. If several keys have had the name, returns the unrevoked
   * one or, failing that, the newest.
   */
  findKey(idOrName: string): Promise<Key | undefined>;
  /** Returns the selected keys, oldest first. */
  listKeys(selection?: KeySelection): Promise<Key[]>;
  /** Throws `not_found` if there is no such key. */
  updateKey(keyId: string, judge: JudgeKey): Promise<Key>;
  /**
   * Applies this node's declared keys and their places. If they clash with other keys, changes nothing and resolves
   * with the clashes. If several daemons share the store, a key remains in force as long as any live node declares it.
   * `stillDeclared` lists the keys that other nodes declare but this one omits or declares differently.
   */
  declareKeys(
    declared: readonly NewDeclaration[],
    judge: (facts: DeclarationFacts) => DeclarationVerdict,
  ): Promise<{ clashes: DeclarationClash[]; stillDeclared: StillDeclared[] }>;
  /** Stores each use as the last one of its secret, unless a later use is already stored. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<void>;
}

/** A daemon as registered with the store, where other daemons and commands can see it. */
export interface ShownNode {
  name: string;
  /** Returns the status to publish. Called on each heartbeat. */
  status(): NodeStatus;
  /** Resolves with the command's outcome, which must be serializable as JSON. */
  carryOut(command: NodeCommand): Promise<unknown>;
  /** Called after another daemon has ended or this one has rejoined, because different declarations may then apply. */
  onNodesChanged(): void;
  /** Called if the store has lost confirmed audit events, for example in a failover. */
  onLost?(range: { fromId: number; toId: number }): void;
}

export interface NodeCommand {
  /**
   * `relearn` reloads, and also resolves the roles in the settings again. `logout` ends all of the node's dashboard
   * sessions.
   */
  does: 'reload' | 'relearn' | 'logout';
  by: string;
}

export interface NodeStore {
  /** Registers this handle as a daemon until it is closed. Throws `store_unavailable`. */
  showNode(node: ShownNode): Promise<void>;
  /** True if this handle's latest successful heartbeat found no other daemon. Heartbeats are a second apart. */
  readonly isAlone: boolean;
  /** Returns the daemons, sorted by name, including those that died within the last day and have not been restarted. */
  listNodes(): Promise<SeenNode[]>;
  /**
   * Claims a task for this node, unless another live node has it. Resolves with true if this node now has the task and
   * a valid lease.
   */
  hasTask(task: string): Promise<boolean>;
  /**
   * Sends a command to a node, which runs it within seconds if it is alive. Resolves with the id to pass to
   * `outcomeOf`.
   */
  askNode(nodeId: string, command: NodeCommand): Promise<string>;
  /** Returns `undefined` until the command has an outcome. */
  outcomeOf(commandId: string): Promise<{ outcome: unknown } | undefined>;
}

/** A token bucket that all nodes share. */
export interface SharedLimit {
  /** Unique among all limits. */
  name: string;
  perMinute: number;
  burst: number;
}

export interface Spent {
  count: number;
  /** The time since the node spent the first of these tokens; the bucket has been refilling since then. */
  agoMs: number;
}

/**
 * Rate limits on callers, counted across all nodes that share the store. If the database server loses the counts, every
 * bucket is full again.
 */
export interface LimitStore {
  /**
   * Takes one token from each limit in turn, stopping at the first empty one, and resolves with a result for each limit
   * tried. Accepts at most two limits. Concurrent calls from several nodes never exceed a limit.
   */
  takeShared(limits: readonly SharedLimit[]): Promise<Array<{ isAllowed: boolean; left: number }>>;
  /**
   * Subtracts tokens that this node has spent locally. Resolves with the tokens left in each limit; this number can be
   * negative.
   */
  spend(spent: ReadonlyArray<SharedLimit & Spent>): Promise<number[]>;
  forgetFullLimits(): Promise<void>;
}

/** The facts for opening an account that is missing from the ledger. */
export interface OpeningFacts<Account> {
  /** The current time by the ledger's clock. */
  now: number;
  /** This process's latest copy of the account, if the ledger has lost the account or its latest version. */
  known?: Account;
  /**
   * The time of the latest request for a rank change before the ledger was opened, by the ledger's clock; absent if
   * there was none.
   */
  lastChangeAt?: number;
}

/**
 * An account's operation, and the function that opens the account if the ledger does not have it. `open` is pure, and
 * may run more than once.
 */
export interface AccountName<Account> {
  operation: string;
  open(facts: OpeningFacts<Account>): Account;
}

/**
 * Records how much of the platform's budget has been spent, in one account per operation. An account is a plain object,
 * serializable as JSON. Changes to the same account never interleave, even across nodes.
 */
export interface BudgetLedger {
  /**
   * Applies `change` to the account, and resolves with its result. `change` is synchronous and mutates only the
   * account. It may run more than once, each time on the latest account that this process has read; only the last run
   * takes effect. `now` is the time by the ledger's clock.
   */
  change<Account extends object, Result>(
    name: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Promise<Result>;
}

export interface BudgetStore {
  /**
   * Returns the ledger shared by all nodes that use the same platform key; `undefined` if the store is for one machine,
   * where each process tracks its budget separately. `credential` is the SHA-256 of the key, in hex.
   */
  budgetLedger(credential: string): BudgetLedger | undefined;
}
