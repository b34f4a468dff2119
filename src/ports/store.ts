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
 * All of rankd's records. Every method that writes is one durable transaction: once it resolves, the data is safe and
 * visible to every other handle. A missing record is `undefined`.
 *
 * Methods that write never interleave: the facts that a method passes to its `judge` do not change before the method
 * has written.
 *
 * Every method throws `store_unavailable`, and writes nothing, if the store can't be read or written.
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
  /** Access to the daemons that share this store; `undefined` if only one daemon can use it, as with SQLite. */
  readonly nodes: NodeStore | undefined;
  /** The limits that are counted across all nodes; `undefined` if only one daemon can use the store. */
  readonly limits: LimitStore | undefined;
  /** The clock that all users of this store share. */
  readonly clock: Clock;
  /**
   * Returns an error once a newer version of rankd has migrated the store to a schema that this version does not
   * support. The daemon then stops.
   */
  outgrown(): RankdError | undefined;
  /** Resolves if the store responds and is still the one that was opened. */
  ping(): Promise<void>;
  /**
   * Like `ping`, but also checks, after a failed write, that writes succeed again and, if daemons share the store, that
   * this node still holds its lease.
   */
  pingWrites(): Promise<void>;
  close(): Promise<void>;
}

export interface WorkspaceStore {
  /** Returns the only workspace. A new store's workspace is active and on the top plan. */
  getWorkspace(): Promise<Workspace>;
  /**
   * Changes the workspace's id. Does nothing if a key exists, because the key's game may know the current id. Resolves
   * with the workspace.
   */
  adoptWorkspaceId(id: string): Promise<Workspace>;
  /**
   * Changes the workspace as `judge` decides, and stores the judge's events with it. `judge` is synchronous and pure,
   * and may run more than once.
   */
  updateWorkspace(judge: (workspace: Workspace) => Verdict<Workspace>): Promise<Workspace>;
}

export interface WhitelistStore {
  /** Returns the entries of this key, or of all keys, ascending by place. */
  listEntries(filter: { keyId?: string }): Promise<WhitelistEntry[]>;
  /**
   * Changes a key's whitelist as `judge` decides, and stores the judge's events with it. `judge` receives the existing
   * entries for these places, in the order of `placeIds`; it is synchronous and pure, and may run more than once. If it
   * refuses, nothing changes, and the refusal is thrown. Throws `not_found` if there is no such key.
   */
  updateEntries(
    places: { keyId: string; placeIds: readonly number[] },
    judge: JudgeEntries,
  ): Promise<{ before: WhitelistEntry[]; after: WhitelistEntry[] }>;
}

/**
 * The queue of requests to change a member, first come, first served across all nodes. Each node orders its own
 * requests itself. When a node ends, its positions are released. If a release fails, it is retried within seconds after
 * the store responds again.
 */
export interface MemberQueueStore {
  /**
   * Adds a request to the end of a member's queue. Requests that other nodes enqueue later wait for it. Resolves with
   * the position.
   */
  enqueue(rankeeId: number): Promise<string>;
  /** Releases a position. Does nothing if it was already released. */
  leave(position: string): Promise<void>;
  /**
   * `isNext` is true if no other live node has a request ahead of `position`. Without a `position`, uses the one that
   * the next request would get.
   */
  queueStanding(query: {
    rankeeId: number;
    position?: string | undefined;
  }): Promise<{ position: string; isNext: boolean }>;
}

/** A real group whose ranks rankd changes with this store. */
export interface ServedGroup {
  group: string;
  /** The absolute path of the configuration file that names the group; absent if none does. */
  configFile?: string;
}

/** Stored data about groups. Each `group` is a title, as in `RankChange.group`. */
export interface GroupStore {
  /** Returns the id of the group's base role, or `undefined` if it is unknown. */
  findBaseRole(group: string): Promise<number | undefined>;
  /** Stores the id of the group's base role in place of the previous one. */
  storeBaseRole(group: string, roleId: number): Promise<void>;
  /** Returns the stored real group, or `undefined`. */
  findServedGroup(): Promise<ServedGroup | undefined>;
  /** Stores the real group in place of the previous one. */
  storeServedGroup(served: ServedGroup): Promise<void>;
  /** Returns the stored roles of the group in no particular order. */
  findRoles(group: string): Promise<StoredRole[]>;
  /** Replaces the group's stored roles. */
  storeRoles(group: string, roles: readonly StoredRole[]): Promise<void>;
  /** Returns the roles that each entry of a setting meant when rankd first resolved it, in no particular order. */
  findMeanings(group: string): Promise<RoleMeaning[]>;
  /**
   * Replaces the group's meanings as `judge` decides, and stores the judge's events with it. `judge` is synchronous and
   * pure, and may run more than once.
   */
  updateMeanings(group: string, judge: (stored: RoleMeaning[]) => Verdict<RoleMeaning[]>): Promise<RoleMeaning[]>;
}

export type StoredRole = Pick<Role, 'id' | 'name' | 'rank'>;

export interface AuditFilter {
  /** Inclusive, in epoch milliseconds. */
  since?: number | undefined;
  /** Exclusive, in epoch milliseconds. */
  until?: number | undefined;
  /** The whole actor, or the part before the colon: `cli` selects every operator in a shell. */
  by?: string | undefined;
  /** The whole action, or the part before the dot: `key` selects every `key.…` action. */
  action?: string | undefined;
  subject?: string | undefined;
  /** Only events about this key, or about actions performed with it. */
  keyId?: string | undefined;
  afterId?: number;
  beforeId?: number;
  oldestFirst?: boolean;
  limit: number;
}

/** A page of the audit chain as stored, with the anchor and the end of the whole chain. */
export interface ChainPage {
  /** The link before the first row in the chain. */
  anchor: ChainLink;
  /** In id order. */
  rows: AuditRow[];
  /** The id of the newest row ever written, even if it was removed. */
  lastId: number;
}

/** Removes old records in steps, so that no step holds the write lock for long. */
export interface RetentionStore {
  /**
   * Reads the oldest `limit` changes after `cursor` and removes those that ended before `before` (epoch milliseconds).
   * Also removes holds that ended before then if the change that began them is gone. `next` is the cursor for the next
   * step, absent after the last one.
   */
  pruneChanges(step: {
    before: number;
    cursor?: string | undefined;
    limit: number;
  }): Promise<{ removed: number; next?: string }>;
  /**
   * Removes at most `limit` events from the beginning of the chain, up to the event `upToId`, and anchors the chain to
   * the last removed one. Resolves with the number of removed events. Throws `conflict` if an event was altered,
   * because retention must not remove evidence.
   */
  pruneAudit(step: { upToId: number; limit: number }): Promise<number>;
}

/** Records about people on the platform. */
export interface PersonStore {
  mentionsOf(userId: number): Promise<Mentions>;
  /**
   * Returns the members of the newest `limit` changes, without those whose name is in the change or was looked up and
   * stored at `since` (epoch milliseconds) or later.
   */
  unnamedMembers(query: { since: number; limit: number }): Promise<number[]>;
  /**
   * Returns at most `limit` users who have this name as a member in a change or as their stored name, ignoring case.
   * Users from changes come first, newest change first.
   */
  usersNamed(name: string, query: { limit: number }): Promise<number[]>;
  /** Returns the names of these users that were stored at `since` (epoch milliseconds) or later, by user id. */
  userNames(userIds: readonly number[], query: { since: number }): Promise<Map<number, string>>;
  /** Stores a user's name (`undefined` if there is no such user), and removes all users' names from before `since`. */
  storeUserName(user: { id: number; name: string | undefined; at: number }, query: { since: number }): Promise<void>;
  /**
   * Stores an erasure request and its events as `judge` decides, unless one with this id exists.
   * `judge` receives true if any record names the user; it is synchronous and pure, and may run more than once.
   * Resolves with the stored request.
   */
  recordErasure(
    request: Pick<ErasureRequest, 'id' | 'userId'>,
    judge: (isNamed: boolean) => Verdict<ErasureRequest>,
  ): Promise<ErasureRequest>;
  /** Returns the requests that are not done, earliest arrival first. */
  waitingErasures(): Promise<ErasureRequest[]>;
  /**
   * Forgets a person in one transaction. Rewrites each change, hold and waiting request that names the person, replaces
   * the user id in the audit log with the pseudonym, removes the salts, the stored name and the linked Discord users,
   * and adds the judge's events. `judge` receives every mention in the audit log; it is synchronous and pure, and may
   * run more than once. If it refuses, nothing changes, and the refusal is thrown. In SQLite's files, the replaced
   * values are overwritten once no process has the files open.
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

/** A single-use link that logs in to the operator's page. */
export interface LoginLink {
  /** The operator who created the link: `web:<user>@<host>`. */
  by: string;
  /** True if the link's session can't change anything. */
  isViewOnly: boolean;
  /** The duration of the link's session, in milliseconds. */
  lifeMs: number;
}

export interface LoginLinkStore {
  /** Stores a link by the hash of its secret. Removes links that have expired, and all but the 100 newest. */
  storeLoginLink(link: LoginLink & { hash: string; expiresAt: number }, now: number): Promise<void>;
  /** Removes and returns a link, unless it has expired. */
  takeLoginLink(hash: string, now: number): Promise<LoginLink | undefined>;
  dropLoginLinks(): Promise<void>;
}

/** Discord users who used a command or were linked to a Roblox user. `forgetPerson` removes the linked ones. */
export interface DiscordStore {
  findDiscordPerson(discordId: string): Promise<DiscordPerson | undefined>;
  listDiscordPeople(): Promise<DiscordPerson[]>;
  /**
   * Returns each linked user's newest Roblox name in the history, by user id. An engine may search only each user's
   * newest changes, so a name can be missing.
   */
  linkedNames(userIds: readonly number[]): Promise<Map<number, string>>;
  /**
   * Adds or changes a person and stores the events as `judge` decides, or throws the judge's refusal.
   * `judge` is synchronous and pure, and may run more than once.
   */
  updateDiscordPerson(discordId: string, judge: JudgePerson): Promise<DiscordPerson>;
}

export interface AuditStore {
  /** Adds an event at the end of the chain, with the store's current time in place of `event.at`. */
  appendAudit(event: DomainEvent): Promise<void>;
  /** Returns events, newest first unless `oldestFirst` is set. */
  listAudit(filter: AuditFilter): Promise<AuditEvent[]>;
  /**
   * Returns the time of the newest backup recorded in the audit log (epoch milliseconds), or `undefined`. Needs no scan
   * of the log.
   */
  lastBackupAt(): Promise<number | undefined>;
  /** Returns at most `limit` rows after `afterId`, in order, from one snapshot. */
  auditChain(page: { afterId: number; limit: number }): Promise<ChainPage>;
  /**
   * Returns all mentions that `forgetPerson` has emptied, and the ids at the chain's ends, from one snapshot. A mention
   * can outlive its event: `pruneAudit` removes it only together with the `person.forget` event.
   */
  emptiedMentions(): Promise<{ anchorId: number; lastId: number; mentions: EmptiedMention[] }>;
}

export type { KeyRecord, NewSecret } from '../core/model.ts';

/** The use of a secret by an allowed request. */
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

/**
 * Keys and their secrets. Each `judge` is synchronous and pure, and may run more than once. If it refuses, nothing
 * changes, and the refusal is thrown.
 */
export interface KeyStore {
  /**
   * Detects changes that other handles made to keys, places and the workspace. Callers call it once for all requests in
   * one turn of the event loop, before the requests call `lookUpKey`. Returns `undefined` if there is nothing to wait
   * for, as with SQLite. Throws or rejects with `store_unavailable`.
   */
  freshen(): Promise<void> | undefined;
  /**
   * Returns the record of the key that has or had a secret with this hash, or `undefined` if there is none. May return
   * a promise. The record is at least as new as the latest `freshen`. Callers share the record and must not change it.
   */
  lookUpKey(query: { hash: string; placeId: number }): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /**
   * Stores a new key and its events as `judge` decides. `judge` receives the unrevoked key that
   * already has the name, if any.
   */
  createKey(key: NewKey, judge: (namesake: Key | undefined) => Verdict<NewKey>): Promise<Key>;
  /**
   * Returns the key with this id or, failing that, with this name: the unrevoked one if there is one, or else the
   * newest.
   */
  findKey(idOrName: string): Promise<Key | undefined>;
  /** Returns the selected keys, oldest first. */
  listKeys(selection?: KeySelection): Promise<Key[]>;
  /**
   * Changes a key as `judge` decides, and stores the judge's events with it. Throws `not_found` if there is no such
   * key.
   */
  updateKey(keyId: string, judge: JudgeKey): Promise<Key>;
  /**
   * Applies the declared keys and their places as `judge` decides. If declarations clash, changes nothing and resolves
   * with the clashes. If several daemons share the store, a key stays as long as any live node declares it.
   * `stillDeclared` lists the keys that other nodes declare and that this node omits or declares differently.
   */
  declareKeys(
    declared: readonly NewDeclaration[],
    judge: (facts: DeclarationFacts) => DeclarationVerdict,
  ): Promise<{ clashes: DeclarationClash[]; stillDeclared: StillDeclared[] }>;
  /** Stores the last use of each of these secrets, unless a later one is stored already. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<void>;
}

/** The part of a daemon that it registers with the store, for the other daemons and for commands. */
export interface ShownNode {
  name: string;
  /** Returns the status to publish. Called with each heartbeat. */
  status(): NodeStatus;
  /** Carries out an operator's command to this node. Resolves with the outcome, which must be serializable as JSON. */
  carryOut(command: NodeCommand): Promise<unknown>;
  /** Called when another daemon has ended or this one has rejoined, because different declarations may apply now. */
  onNodesChanged(): void;
  /** Called if the store has lost confirmed audit events, as after a failover. */
  onLost?(range: { fromId: number; toId: number }): void;
}

/** An operator's command to a daemon, which can be on a different machine. */
export interface NodeCommand {
  /** `relearn`: a reload that also resolves the settings' roles again. `logout`: ends all dashboard sessions. */
  does: 'reload' | 'relearn' | 'logout';
  /** The actor recorded in the audit log. */
  by: string;
}

/** The daemons that share one store, and the messages between them. */
export interface NodeStore {
  /** Registers this handle as a daemon until it is closed. Throws `store_unavailable`. */
  showNode(node: ShownNode): Promise<void>;
  /** True if this handle's latest successful heartbeat found no other daemon. Heartbeats are a second apart. */
  readonly isAlone: boolean;
  /** Returns the daemons in name order, including those that died within the last day and were not restarted. */
  listNodes(): Promise<SeenNode[]>;
  /** Takes a task unless another live node has it. Resolves with true if this node now has the task and a lease. */
  hasTask(task: string): Promise<boolean>;
  /** Sends a command to a node, which runs it within seconds if it is alive. Resolves with an id for `outcomeOf`. */
  askNode(nodeId: string, command: NodeCommand): Promise<string>;
  /** Returns the outcome of a command, or `undefined` until there is one. */
  outcomeOf(commandId: string): Promise<{ outcome: unknown } | undefined>;
}

/** A token bucket that all nodes share. */
export interface SharedLimit {
  /** Identifies the limit among all limits. */
  name: string;
  perMinute: number;
  burst: number;
}

/** Tokens that one node has spent locally. */
export interface Spent {
  count: number;
  /** The time since the node spent the first of them. The limit refills from that moment. */
  agoMs: number;
}

/**
 * Callers' limits, counted across all nodes that share the store. If the database server loses the counts, all limits
 * are full again.
 */
export interface LimitStore {
  /**
   * Takes one token from each limit in turn, and stops at the first empty one. Concurrent calls by several nodes never
   * exceed a limit. Resolves with the result and the tokens left for each limit tried. Accepts at most two limits.
   */
  takeShared(limits: readonly SharedLimit[]): Promise<Array<{ isAllowed: boolean; left: number }>>;
  /**
   * Subtracts tokens that this node has spent locally. Resolves with the tokens left in each limit, which can be
   * negative.
   */
  spend(spent: ReadonlyArray<SharedLimit & Spent>): Promise<number[]>;
  /** Removes the records of limits that are full again. */
  forgetFullLimits(): Promise<void>;
}

/** The facts for opening an account that the ledger does not have. */
export interface OpeningFacts<Account> {
  /** The ledger's time. */
  now: number;
  /** This process's latest copy of the account, if the ledger has lost the account or its latest version. */
  known?: Account;
  /** The time of the latest request for a rank change (by the ledger's clock), if there was one. */
  lastChangeAt?: number;
}

/** Identifies an account by its operation. `open` returns a new account; it is pure and may run more than once. */
export interface AccountName<Account> {
  operation: string;
  open(facts: OpeningFacts<Account>): Account;
}

/**
 * Stores the spent part of the platform's budget, in one account per operation. An account is a plain record,
 * serializable as JSON. Changes to one account never interleave, on any node.
 */
export interface BudgetLedger {
  /**
   * Applies `change` to the account at the ledger's time, and resolves with its result. `change` is synchronous,
   * mutates only the account, and may run more than once, each time on the current account; only the last run counts.
   */
  change<Account extends object, Result>(
    name: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Promise<Result>;
}

/** The shared budgets of the platform's keys. */
export interface BudgetStore {
  /**
   * Returns the ledger that all nodes with the same platform key share, or `undefined` if the store is for one machine,
   * where each process has a separate budget. `credential` is the SHA-256 of the key, in hex.
   */
  budgetLedger(credential: string): BudgetLedger | undefined;
}
