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
 * All of rankd's records. Every method that writes is one durable transaction: once it resolves, the data is safe and visible to every
 * other handle. A missing record is `undefined`.
 *
 * Two methods that write never interleave. The facts that a method reads before it writes, and those that its `judge` gets, stay true until
 * it has written.
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
    DiscordStore,
    LoginLinkStore,
    WebhookStore,
    BudgetStore {
  /** The daemons that share this store; `undefined` if one alone can work on it, as with SQLite. */
  readonly nodes: NodeStore | undefined;
  /** Limits that are counted for all nodes together; `undefined` if there is one node. */
  readonly limits: LimitStore | undefined;
  /** The clock of all users of this store. */
  readonly clock: Clock;
  /** The reason this rankd can no longer work with the store: a later one has migrated it. A daemon then finishes its work and stops. */
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
  /** Gives it this id, unless there is a key already, whose game may know the present one. Resolves with the workspace. */
  adoptWorkspaceId(id: string): Promise<Workspace>;
  /** Changes it as `judge` decides, with its events. `judge` is synchronous and pure, and may run more than once. */
  updateWorkspace(judge: (workspace: Workspace) => Verdict<Workspace>): Promise<Workspace>;
}

export interface WhitelistStore {
  /** The entries of this key, or of all keys, ascending by place. */
  listEntries(filter: { keyId?: string }): Promise<WhitelistEntry[]>;
  /**
   * Changes the whitelist of a key as `judge` decides, with its events. `judge` gets the existing entries of these places, in
   * the order of the places; it is synchronous and pure, and may run more than once. Throws `not_found` if there is no such key,
   * and the refusal of `judge`, with nothing changed.
   */
  updateEntries(
    places: { keyId: string; placeIds: readonly number[] },
    judge: JudgeEntries,
  ): Promise<{ before: WhitelistEntry[]; after: WhitelistEntry[] }>;
}

/**
 * The queue of requests to change a member, first come, first served over all nodes. Each node orders its own
 * changes. When a node ends, its positions in all queues end with it. A position that could not be left is released within seconds
 * once the store answers.
 */
export interface MemberQueueStore {
  /** Joins the end of a member's queue: requests that join later, on any other node, wait. Resolves with the position in it. */
  enqueue(rankeeId: number): Promise<string>;
  /** Releases a position; does nothing if it was released before. */
  leave(position: string): Promise<void>;
  /**
   * `isNext`: no other live node has a request ahead of this position. Without a position, it is about the end of the queue,
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

/** Stored facts about a group that do not change. A group is named by its title, as in `RankChange.group`. */
export interface GroupStore {
  /** The id of the group's base role; `undefined` if it is not known. */
  findBaseRole(group: string): Promise<number | undefined>;
  /** Replaces the id that was stored before. */
  storeBaseRole(group: string, roleId: number): Promise<void>;
  /** The real group that was stored last; `undefined` if there was none. */
  findServedGroup(): Promise<ServedGroup | undefined>;
  /** Replaces the group that was stored before. */
  storeServedGroup(served: ServedGroup): Promise<void>;
  /** The roles that were stored last, in no order; empty if there are none. */
  findRoles(group: string): Promise<StoredRole[]>;
  /** Replaces all roles of the group. They only fill lists for people to choose from. */
  storeRoles(group: string, roles: readonly StoredRole[]): Promise<void>;
  /** The roles that the entries of settings meant when rankd first read them, in no order. */
  findMeanings(group: string): Promise<RoleMeaning[]>;
  /** Replaces all of them as `judge` decides, with its events. `judge` is synchronous and pure, and may run more than once. */
  updateMeanings(group: string, judge: (kept: RoleMeaning[]) => Verdict<RoleMeaning[]>): Promise<RoleMeaning[]>;
}

export type StoredRole = Pick<Role, 'id' | 'name' | 'rank'>;

export interface AuditFilter {
  /** Epoch milliseconds, included. */
  since?: number | undefined;
  /** Epoch milliseconds, not included. */
  until?: number | undefined;
  /** The whole name, or the part before the colon: `cli` is every operator in a shell. */
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

/** A part of the audit's chain as stored, and the beginning and end of the whole chain. */
export interface ChainPage {
  /** The link before the first row of the chain. */
  anchor: ChainLink;
  /** The rows, in order of their ids. */
  rows: AuditRow[];
  /** The id of the newest row that was ever written. */
  lastId: number;
}

/** Removes old records in steps: no step holds the write lock for long. */
export interface RetentionStore {
  /**
   * Reads the oldest `limit` changes after `cursor` and removes those that ended before `before` (epoch milliseconds), and with
   * them the holds that they began, if they are over. Open changes stay. `next` is the cursor of the next step, absent if nothing older is left.
   */
  pruneChanges(step: {
    before: number;
    cursor?: string | undefined;
    limit: number;
  }): Promise<{ removed: number; next?: string }>;
  /**
   * Removes at most `limit` events from the beginning of the chain, none after the event `upToId`, and anchors the chain to the last
   * of them. Returns how many. Throws `conflict` if one of them was altered: retention must not remove the evidence.
   */
  pruneAudit(step: { upToId: number; limit: number }): Promise<number>;
}

/** The records of people on the platform. */
export interface PersonStore {
  /** The number of records that mention a user, as ranker or as member, and whether one of the changes is open. */
  mentionsOf(userId: number): Promise<Mentions>;
  /** The members of the newest changes (at most `limit`) whose callers gave no name, and for whom no name was stored since then (epoch milliseconds). */
  unnamedMembers(query: { since: number; limit: number }): Promise<number[]>;
  /** Users to whom a change or a stored name once gave this name, in any case: those of the newest changes first. */
  usersNamed(name: string, query: { limit: number }): Promise<number[]>;
  /** The names that were stored for these users since then (epoch milliseconds), by user id. */
  userNames(userIds: readonly number[], query: { since: number }): Promise<Map<number, string>>;
  /** Stores a name, or that the user has none, and removes all names that were stored before `since`. */
  storeUserName(user: { id: number; name: string | undefined; at: number }, query: { since: number }): Promise<void>;
  /**
   * Stores a request as `judge` decides, with its events, unless one with this id is stored. `judge` gets whether any record names the user;
   * it is synchronous and pure, and may run more than once. Resolves with the request as stored now.
   */
  recordErasure(
    request: Pick<ErasureRequest, 'id' | 'userId'>,
    judge: (isNamed: boolean) => Verdict<ErasureRequest>,
  ): Promise<ErasureRequest>;
  /** The requests that are not done, earliest arrival first. */
  waitingErasures(): Promise<ErasureRequest[]>;
  /**
   * Forgets a person in one transaction: rewrites each change and hold that names the person, and each waiting request of the person,
   * replaces the user id in the audit with the pseudonym, removes the salts and a stored name, and adds the events of `judge`. `judge` is
   * synchronous and pure, may run more than once, and gets every mention in the audit; no other write comes between its facts and its
   * verdict. The replaced values disappear from the store's files once no process has them open. Throws the refusal of `judge`, with
   * nothing changed.
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

/** A link to the operator's page that logs in once. */
export interface LoginLink {
  /** The operator who made it: `web:<user>@<host>`. */
  by: string;
  /** True if its session can change nothing. */
  isViewOnly: boolean;
  /** How long its session lasts. */
  lifeMs: number;
}

export interface LoginLinkStore {
  /** Stores a link under the hash of its secret until `expiresAt`. Removes those that have expired by `now`, and all but the 100 newest. */
  storeLoginLink(link: LoginLink & { hash: string; expiresAt: number }, now: number): Promise<void>;
  /** Takes a link that has not expired by `now`, so that no other call gets it. */
  takeLoginLink(hash: string, now: number): Promise<LoginLink | undefined>;
  dropLoginLinks(): Promise<void>;
}

/** People in Discord: those who used a command there, and those whom the operator linked to a Roblox user. `forgetPerson` removes them. */
export interface DiscordStore {
  findDiscordPerson(discordId: string): Promise<DiscordPerson | undefined>;
  /** All of them, in no particular order. */
  listDiscordPeople(): Promise<DiscordPerson[]>;
  /** For linked users: the newest Roblox name in the history. An engine may read only the newest changes of each user. */
  linkedNames(userIds: readonly number[]): Promise<Map<number, string>>;
  /** Adds or changes a person as `judge` decides, with its events, and throws its refusal. `judge` is synchronous and pure, and may run more than once. */
  updateDiscordPerson(discordId: string, judge: JudgePerson): Promise<DiscordPerson>;
}

export interface AuditStore {
  /** Adds the event at the end of the chain. */
  appendAudit(event: DomainEvent): Promise<void>;
  /** Newest first, unless asked for otherwise. */
  listAudit(filter: AuditFilter): Promise<AuditEvent[]>;
  /** When the newest backup was recorded (epoch milliseconds); `undefined` if none is in the audit. Quick, however long the audit is. */
  lastBackupAt(): Promise<number | undefined>;
  /** At most `limit` rows after `afterId`, in order, with the link before the very first row and the id of the newest, in one snapshot. */
  auditChain(page: { afterId: number; limit: number }): Promise<ChainPage>;
  /**
   * All mentions that `forgetPerson` emptied, with the first and last id of the chain, in one snapshot. The mentions outlive the events that they were in: `pruneAudit`
   * removes them only with the event that emptied them.
   */
  emptiedMentions(): Promise<{ anchorId: number; lastId: number; mentions: EmptiedMention[] }>;
}

export type { KeyRecord, NewSecret } from '../core/model.ts';

/** The fact that a request was allowed with a secret. */
export interface KeyUse {
  secretId: string;
  placeId: number | undefined;
  /** Epoch milliseconds. */
  at: number;
}

export interface KeySelection {
  /** Only keys with one of these ids. */
  ids?: readonly string[];
  /** Only keys of this name. */
  name?: string;
  /** Only keys that were made after the key of this id. */
  after?: string;
  /** Only keys that are neither revoked nor expired at that time (epoch milliseconds). */
  acceptedAt?: number;
  /** Only keys that were made on a simulated group, or only others. */
  isSimulated?: boolean;
  limit?: number;
}

/**
 * Keys and their secrets. A `judge` is synchronous and pure, and may run more than once; its facts stay true until its verdict is
 * stored.
 */
export interface KeyStore {
  /**
   * Finds changes of keys, places and the workspace by other handles. It is called once for all requests of a turn of the
   * event loop, after the last of them was received, and their look-ups follow. `undefined` if there is nothing to wait for, as
   * with SQLite. Throws or rejects with `store_unavailable`.
   */
  freshen(): Promise<void> | undefined;
  /**
   * The record of the key that has or had a secret with this hash, or `undefined` if no key ever had one; or a promise of that.
   * SQLite answers at once. The record is at least as new as the latest `freshen`. It is shared: do not change it.
   */
  lookUpKey(query: { hash: string; placeId: number }): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /**
   * Stores a new key with its event, if `judge` allows it. `judge` gets the key, not revoked, that already has the name.
   * Throws its refusal.
   */
  createKey(key: NewKey, judge: (namesake: Key | undefined) => Verdict<NewKey>): Promise<Key>;
  /** The key with this id, else the one with this name: one that is not revoked if there is one, else the newest. */
  findKey(idOrName: string): Promise<Key | undefined>;
  /** The selected keys, oldest first. */
  listKeys(selection?: KeySelection): Promise<Key[]>;
  /** Changes a key as `judge` decides, with its events. Throws `not_found`, and the refusal of `judge`, with nothing changed. */
  updateKey(keyId: string, judge: JudgeKey): Promise<Key>;
  /**
   * Applies the declared keys and their places, as `judge` decides. If there are clashes, it resolves with them and changes nothing. If
   * several daemons share the store, a key stays as long as the node of any handle declares it; `stillDeclared` has the keys that other nodes
   * declare and this one does not, or declares differently.
   */
  declareKeys(
    declared: readonly NewDeclaration[],
    judge: (facts: DeclarationFacts) => DeclarationVerdict,
  ): Promise<{ clashes: DeclarationClash[]; stillDeclared: StillDeclared[] }>;
  /** Stores the last use of each of these secrets. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<void>;
}

/** A daemon as the other daemons see it. */
export interface ShownNode {
  name: string;
  /** Called with each heartbeat. */
  status(): NodeStatus;
  /** Carries out an operator's command to this node; resolves with the outcome, which must fit into JSON. */
  carryOut(command: NodeCommand): Promise<unknown>;
  /** Called when another daemon is gone, or when this one had to join again: other declarations may apply now. */
  onNodesChanged(): void;
  /** Called if the store has lost confirmed audit events, as after a failover, with the numbers of the first and of the last. */
  onLost?(range: { fromId: number; toId: number }): void;
}

/** An operator's request to a daemon from any machine. */
export interface NodeCommand {
  /** `relearn`: a reload that also resolves every entry that names roles again. */
  does: 'reload' | 'relearn' | 'logout';
  /** The actor in the audit. */
  by: string;
}

/** The daemons that share one store, and the messages between them. A store for a single daemon has none. */
export interface NodeStore {
  /** Registers this handle as a daemon, which all others see until it is closed. Throws `store_unavailable`. */
  showNode(node: ShownNode): Promise<void>;
  /** True if this handle saw no other daemon in its latest read, at most a second ago. */
  readonly isAlone: boolean;
  /** All daemons by name, including those that crashed within the last day and were not restarted. */
  listNodes(): Promise<SeenNode[]>;
  /** True if this node has the task, which only one node has at a time, until that node ends. The call takes the task if no node has it. */
  hasTask(task: string): Promise<boolean>;
  /** Asks a node to carry out a command, which it does within seconds if it is alive. Resolves with an id for `outcomeOf`. */
  askNode(nodeId: string, command: NodeCommand): Promise<string>;
  /** The outcome of a command to a node; `undefined` until there is one. */
  outcomeOf(commandId: string): Promise<{ outcome: unknown } | undefined>;
}

/** A token bucket of all nodes together. */
export interface SharedLimit {
  /** Identifies it among all limits. */
  name: string;
  perMinute: number;
  burst: number;
}

/** The number of admitted callers, and how long ago the first was admitted: the limit refills from then on. */
export interface Spent {
  count: number;
  agoMs: number;
}

/**
 * The callers' use of their limits, counted over all nodes that share the store. It may be lost with the store's
 * server: then all limits are full.
 */
export interface LimitStore {
  /**
   * Takes one token from each limit in turn, up to the first that is empty, which stays as it is. Even if several nodes take at once, no limit
   * is exceeded. Resolves with the limits tried, and what is left of each.
   */
  takeShared(limits: readonly SharedLimit[]): Promise<Array<{ isAllowed: boolean; left: number }>>;
  /** Reports the callers that this node has admitted alone. Resolves with what is left of each limit for all nodes, which can be negative. */
  spend(spent: ReadonlyArray<SharedLimit & Spent>): Promise<number[]>;
  /** Removes the records of limits that are full again. */
  forgetFullLimits(): Promise<void>;
}

/** The facts about an account that the ledger does not have. */
export interface OpeningFacts<Account> {
  /** The ledger's time. */
  now: number;
  /** The account as this process knew it, if the ledger has lost it or its latest version. */
  known?: Account;
  /** The time of the latest request for a rank change (by the ledger's clock), if the ledger knows it. */
  lastChangeAt?: number;
}

/** An account, by the operation whose calls it counts, and how it is opened. `open` is pure and may run more than once. */
export interface AccountName<Account> {
  operation: string;
  open(facts: OpeningFacts<Account>): Account;
}

/**
 * Stores how much of each platform operation's budget is spent. An account is a plain record that JSON can hold. Changes
 * of one account never interleave, on any node.
 */
export interface BudgetLedger {
  /**
   * Lets `change` change the account, at the ledger's time, and resolves with its result. `change` is synchronous, changes only the account that it
   * gets, and may run more than once, each time on the current account; the last run counts.
   */
  change<Account extends object, Result>(
    name: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Promise<Result>;
}

/** The budget of a platform's key, if all users of this store share it. */
export interface BudgetStore {
  /**
   * The ledger of all nodes that work with the same key. `undefined` if this store serves one machine: then each process has a separate
   * budget. `credential` is the SHA-256 of the key, in hex.
   */
  budgetLedger(credential: string): BudgetLedger | undefined;
}
