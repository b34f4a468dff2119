import type { AuditRow, ChainLink } from './core/audit.ts';
import type {
  AuditEvent,
  Key,
  KeyDeclaration,
  KeyMode,
  KeyRules,
  Plan,
  RankChange,
  Scope,
  WhitelistEntry,
  Workspace,
} from './core/model.ts';
import type { ErrorCode } from './errors.ts';

/**
 * Everything rankd remembers. Every method is one durable transaction; what is not found is `undefined`. `by` is the
 * doer as the audit names it: a method that takes it writes its audit event in the same transaction.
 *
 * Errors: `not_found`, `already_exists`, `conflict` (also what the configuration declares, and an idempotency key that was taken meanwhile), `key_paused`, and
 * `store_unavailable` (disk full, locked, read-only; nothing was written).
 */
export interface Store
  extends WorkspaceStore,
    KeyStore,
    WhitelistStore,
    ChangeStore,
    LineStore,
    AuditStore,
    RetentionStore {
  /** Resolves when the store answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface WorkspaceStore {
  /** The one workspace; made active and on the top plan when the store is. */
  getWorkspace(): Promise<Workspace>;
  updateWorkspace(change: { active?: boolean; plan?: Plan }, by: string): Promise<Workspace>;
}

export interface NewSecret {
  /** SHA-256 of the whole key, 32 bytes. */
  hash: Buffer;
  masked: string;
}

export interface NewKey extends KeyRules {
  id: string;
  name: string;
  mode: KeyMode;
  scopes: Scope[];
  expiresAt?: number;
  secret: NewSecret;
}

/** The rules to set; those left out stay as they are. */
export type KeyRulesChange = { [Rule in keyof KeyRules]?: KeyRules[Rule] | null };

/** What one read says about the presenter of a key. */
export interface Presented {
  workspace: Workspace;
  key: Key;
  /** Names the presented secret to `recordKeyUses`. */
  secretId: number;
  /** Set where the presented secret is the old one of a rotation: a newer one was made, this one counts until then. */
  retiring?: { since: number; until: number };
  /** The entry of the asked place for this key. */
  entry?: WhitelistEntry;
}

/** A key that is declared; `id` is for one that was not declared before. */
export interface NewDeclaration extends KeyDeclaration {
  id: string;
}

/** A declared key whose name or secret a key has that is not declared. */
export interface DeclarationClash {
  /** Of the declared key among those given. */
  index: number;
  field: 'name' | 'hash';
  key: Key;
}

/** That a request was allowed with a secret. */
export interface KeyUse {
  secretId: number;
  placeId: number;
  at: number;
}

export interface KeySelection {
  /** No others than those with one of these ids. */
  ids?: readonly string[];
  /** Those made after the key of this id. */
  after?: string;
  limit?: number;
}

export interface KeyStore {
  /** The caller behind a secret, by equality of its hash; `undefined` where no key ever had it. Shared: not to be changed. */
  findPresented(query: { hash: Buffer; placeId: number }): Promise<Presented | undefined>;
  /** Throws `already_exists` where a key that is not revoked has the name. */
  createKey(key: NewKey, by: string): Promise<Key>;
  /** By id, else by name; a key that is not revoked is preferred, then the newest. */
  findKey(idOrName: string): Promise<Key | undefined>;
  /** Oldest first: all, or those that the selection leaves. */
  listKeys(selection?: KeySelection): Promise<Key[]>;
  /** The new secret counts from now, all older ones until `oldExpiresAt`. */
  rotateKey(rotation: { keyId: string; secret: NewSecret; oldExpiresAt: number }, by: string): Promise<Key>;
  /** Changes how the key narrows the policy; null takes a rule away. Throws `conflict` where it is revoked. */
  updateKey(change: { keyId: string; rules: KeyRulesChange }, by: string): Promise<Key>;
  revokeKey(keyId: string, by: string): Promise<Key>;
  /** Pauses a key (the breaker) or lifts the pause. */
  pauseKey(change: { keyId: string; paused: boolean; reason: string }, by: string): Promise<Key>;
  /**
   * Makes these keys and their places hold, changes those declared before (known by their names) and revokes those declared
   * no more; audited where something is different. Changes nothing where something is in the way, and returns that.
   */
  declareKeys(declared: readonly NewDeclaration[], by: string): Promise<DeclarationClash[]>;
  /** Keeps the last use of each of these secrets. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<void>;
}

export interface WhitelistStore {
  /** All or none. An entry that exists is made active again, its note replaced where one is given. Returns them with whether each is new. */
  addEntries(
    input: { keyId: string; placeIds: number[]; note?: string },
    by: string,
  ): Promise<Array<WhitelistEntry & { added: boolean }>>;
  /** Ascending by place; all keys' where no key is named. */
  listEntries(filter: { keyId?: string }): Promise<WhitelistEntry[]>;
  /** All or none: throws `not_found` that names the places that are not on the key's whitelist. */
  setEntriesActive(
    input: { keyId: string; placeIds: number[]; active: boolean },
    by: string,
  ): Promise<WhitelistEntry[]>;
  /** All or none, as `setEntriesActive`. */
  removeEntries(input: { keyId: string; placeIds: number[] }, by: string): Promise<WhitelistEntry[]>;
}

/** Which changes; without anything, all of them. */
export interface ChangeSelection {
  rankeeId?: number;
  rankerId?: number;
  keyId?: string;
  placeId?: number;
  /** As the history names who asked: `key:<id>` or `cli:<user>@<host>`. */
  by?: string;
  undoId?: string;
  states?: RankChange['state'][];
  /** When it was asked for: epoch milliseconds, included. */
  since?: number;
  /** When it was asked for: epoch milliseconds, not included. */
  until?: number;
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
  state: Exclude<RankChange['state'], 'pending'>;
  code: ErrorCode | null;
  message: string;
  /** Roles seen at the end; absent while that is unknown: then the wanted ones stay. */
  rolesAfter?: number[];
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
   * than `after`: what was read of the member since may be stale. Throws `key_paused` where its key is paused, or goes
   * beyond one of `limits` and is paused now (then with `internal`), and `cooldown` where the ranker's own is not over.
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
    since: number;
  }): Promise<RankChange | undefined>;
  /** The member's newest change in any state, and the open one (pending or unknown) if there is one. */
  latestChange(rankeeId: number): Promise<{ latestId?: string; open?: RankChange }>;
  /** When a change of this member was last applied; dry runs and quiet repetitions do not count. */
  lastAppliedAt(rankeeId: number): Promise<number | undefined>;
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
  countChanges(since: number): Promise<Record<RankChange['state'], number>>;
  /** Every pending or unknown change, oldest first. */
  openChanges(): Promise<RankChange[]>;
}

/**
 * Who waits to change a member, in order of arrival across processes. Tickets count up; those of a process that died expire.
 * `holder` names a process; it keeps the order among its own.
 */
export interface LineStore {
  /** The place of a change that arrives now: everyone with a lower ticket is ahead of it. */
  endOfLine(rankeeId: number): Promise<number>;
  /** Makes later ones wait for `lifeMs` (milliseconds) or until it is given back. The ticket is also the place. */
  takeTicket(ticket: { rankeeId: number; holder: string; lifeMs: number }): Promise<number>;
  giveBack(ticket: number): Promise<void>;
  /** True where no other process has somebody ahead of this place. */
  isNext(query: { rankeeId: number; place: number; holder: string }): Promise<boolean>;
  /** Removes the tickets of holders that begin so, and those that have expired. */
  forgetTickets(holderPrefix: string): Promise<void>;
}

export interface AuditFilter {
  /** Epoch milliseconds, included. */
  since?: number;
  /** Epoch milliseconds, not included. */
  until?: number;
  /** The whole, or what is before a colon: `cli` is every operator. */
  by?: string;
  /** The whole, or what is before a dot: `key` is every `key.…`. */
  action?: string;
  subject?: string;
  /** Done to or with this key, or about something done with it. */
  keyId?: string;
  afterId?: number;
  beforeId?: number;
  oldestFirst?: boolean;
  limit: number;
}

/** A stretch of the audit's chain as it is kept, and where the whole of it begins and ends. */
export interface ChainPage {
  /** What the first row follows. */
  anchor: ChainLink;
  /** In order of their ids. */
  rows: AuditRow[];
  /** The id of the newest row that was ever written. */
  lastId: number;
}

/** What retention removes, a step at a time: no step holds the write lock for long. */
export interface RetentionStore {
  /**
   * Looks at the oldest `limit` changes after `after` and removes those that ended before `before` (epoch milliseconds). Open
   * ones stay. `next` is where to go on, absent where nothing older is left.
   */
  pruneChanges(step: { before: number; after: number; limit: number }): Promise<{ removed: number; next?: number }>;
  /**
   * Removes at most `limit` events from the beginning of the chain, up to the first that is not from before `before` (epoch
   * milliseconds), and anchors the chain to the last of them. Returns how many. Throws `conflict` where one of them is not as it
   * was written: retention must not remove the evidence.
   */
  pruneAudit(step: { before: number; limit: number }): Promise<number>;
}

export interface AuditStore {
  /** Adds the event at the end of the chain. */
  appendAudit(event: Omit<AuditEvent, 'id' | 'at'>): Promise<void>;
  /** Newest first, unless asked for otherwise. */
  listAudit(filter: AuditFilter): Promise<AuditEvent[]>;
  auditChain(page: { afterId: number; limit: number }): Promise<ChainPage>;
}
