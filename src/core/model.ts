import type { ErrorCode } from '../base/errors.ts';

/** The domain's types. The platform's ids are integers up to 2^53-1; times are epoch milliseconds. */

// ---- the group on the platform ----

/**
 * `base`: the role that every member holds; `guest`: the role of non-members; `owner`: the role of the group's owner;
 * `unclear`: one of several candidates for the base role, because the platform does not show which one it is;
 * `private`: a role that the group's list of roles omits. rankd gives and takes only `custom` roles.
 */
export type RoleKind = 'guest' | 'base' | 'owner' | 'unclear' | 'private' | 'custom';

export interface Role {
  id: number;
  name: string;
  /** 0..255; several roles can share a rank. */
  rank: number;
  kind: RoleKind;
  /** The role's powers over others; absent if the platform does not show them. */
  powers?: Power[];
}

/** A power that makes a role attractive to attackers: one permission on the platform, or several similar ones. */
export type Power = 'change ranks' | 'accept members' | 'remove members' | 'manage the group';

export interface Group {
  id: number;
  name: string;
  memberCount: number;
  ownerId?: number;
  /** True if the platform has locked the group, so that nothing in it can be changed. */
  isLocked?: boolean;
}

/** A user's request to be forgotten, which the platform passes on to the experiences that the user has visited. */
export interface ErasureRequest {
  /** The id of the platform's notification. */
  id: string;
  /** Replaced by a pseudonym once the request is done. */
  userId: number;
  /**
   * The time of the request according to the platform or, if the platform gave none, the time when rankd received it.
   */
  requestedAt: number;
  receivedAt: number;
  doneAt?: number;
}

export interface Place {
  id: number;
  name: string;
}

export interface NamedUser {
  id: number;
  name: string;
}

/** A member, with the roles that the platform reports. They may or may not include the base role. */
export interface Member {
  userId: number;
  roleIds: number[];
  /**
   * The time when the user joined the group, by the platform's clock (epoch milliseconds); absent if the platform does
   * not report it.
   */
  joinedAt?: number;
}

/** The state of rankd's credential, as the platform reports it. */
export interface Credential {
  /** `unreported`: the platform responds, but does not report the state. */
  state: 'valid' | 'disabled' | 'expired' | 'invalid' | 'unreported';
  /** The platform's message if the state is `invalid`, e.g. `401: Invalid API Key`. */
  refusal?: string;
  /** The acting account; absent if the platform does not report it. */
  userId?: number;
  /** True if the credential can change roles in this group; absent if the platform does not report it. */
  canWrite?: boolean;
  expiresAt?: number;
}

/** The account that rankd acts with, and the limits on its changes. */
export interface ActingAccount {
  userId: number;
  ownerId: number | undefined;
  /**
   * The highest rank among its roles; 0 if it is not a member of the group. Unless it owns the group, it can change
   * only roles with lower ranks.
   */
  rank: number;
  /** True if it owns the group or has a role that can change ranks; absent if the platform does not show that. */
  mayChangeRanks?: boolean;
}

// ---- the workspace ----

export type Plan = 'top' | 'free';

export interface Workspace {
  id: string;
  name: string;
  plan: Plan;
  active: boolean;
  createdAt: number;
}

export const scopes = ['verify', 'rank', 'suspend', 'roles'] as const;
export type Scope = (typeof scopes)[number];

/** The default scopes of a new key. */
export const usualScopes: readonly Scope[] = ['verify', 'rank'];

export type KeyMode = 'live' | 'test';

export const directions = ['promote', 'demote'] as const;
export type Direction = (typeof directions)[number];

/** A key's own rules. Its limits on ranks apply in addition to the policy's. */
export interface KeyRules {
  /** The key can't give or take roles above this rank. */
  maxRank?: number;
  /** The key can't give or take roles below this rank, or change members below it. */
  minRank?: number;
  /** The id of the role whose current rank replaces `maxRank`. */
  maxRankRole?: number;
  /** The id of the role whose current rank replaces `minRank`. */
  minRankRole?: number;
  /** The only direction in which the key can change ranks; absent if both are allowed. */
  direction?: Direction;
  selfRank?: 'deny';
  /** True for the key of a game that changes ranks automatically: its changes need no player as ranker. */
  isSystem?: boolean;
  /** True if the key is allowed to give and take privileged roles even if the policy reserves them for the operator. */
  isPrivileged?: boolean;
  /**
   * True if the key is valid from any place or none, for clients that are not games, such as a bot or an online shop.
   */
  isAnyPlace?: boolean;
  /** The maximum number of rank requests per minute, in place of the general limit. */
  ratePerMinute?: number;
  /**
   * True for a key that only Discord users with a certain role use; such a key has no secret. Only a declaration can
   * change this rule.
   */
  isForDiscord?: boolean;
}

/** An API key. The store contains only the SHA-256 and the masked form of a secret, never the secret itself. */
export interface Key extends KeyRules {
  id: string;
  name: string;
  mode: KeyMode;
  scopes: Scope[];
  createdAt: number;
  expiresAt?: number;
  revokedAt?: number;
  /** Set while the key is paused, by the circuit breaker or the operator. */
  pausedAt?: number;
  resumedAt?: number;
  /**
   * True if the key was created for a simulated group and has not been adopted since. Only simulated groups accept it.
   */
  isSimulated?: boolean;
  /**
   * Set if the configuration declares the key, e.g. `rankd.yaml:31`. Only the configuration can then change or revoke
   * the key, but an operator can still pause it.
   */
  declaredIn?: string;
  /** The accepted secrets, newest first. A key has more than one only during a rotation's overlap. */
  secrets: KeySecret[];
}

export interface KeySecret {
  /** The part that is safe to show, e.g. `rk_live_3kf…Zp9`. */
  masked: string;
  createdAt: number;
  /** The time when a rotation replaced the secret; absent for the current secret. */
  replacedAt?: number;
  /** The time when a replaced secret expires; absent for the current secret. */
  expiresAt?: number;
  /** The time of the last recorded use. A daemon may not have recorded more recent uses yet. */
  lastUsedAt?: number;
  lastPlaceId?: number;
}

export type KeyState = 'active' | 'rotating' | 'expired' | 'revoked';

export interface WhitelistEntry {
  keyId: string;
  /** A place or universe id, as the game sends it in placeid. */
  placeId: number;
  active: boolean;
  note: string;
  addedAt: number;
  /** Set if the configuration declares the entry, e.g. `rankd.yaml:38`. Only the configuration can then change it. */
  declaredIn?: string;
}

export interface KeyDeclaration {
  name: string;
  /** SHA-256 of its secret, in hex; absent for a Discord key, which has none. */
  hash?: string;
  mode: KeyMode;
  scopes: Scope[];
  rules: KeyRules;
  expiresAt?: number;
  declaredIn: string;
  whitelist: { placeIds: number[]; declaredIn: string };
}

export interface NewSecret {
  /** SHA-256 of the whole key, in hex. */
  hash: string;
  masked: string;
}

/** The stored data about the key that a secret belongs to. */
export interface KeyRecord {
  workspace: Workspace;
  key: Key;
  secretId: string;
  /** Set if a rotation replaced the secret at `since`; the secret is accepted until `until`. */
  retiring?: { since: number; until: number };
  entry?: WhitelistEntry | undefined;
}

// ---- a rank change ----

/**
 * A validated request. `newRankId` is a rank number (1..255) or a role id (above 255); 0 if the request contains
 * neither, e.g. for a step, a role name or a suspension.
 */
export interface RankRequest {
  rankeeId: number;
  rankeeName: string;
  /** 0 if the request names no player as ranker. */
  rankerId: number;
  rankerName: string;
  newRankId: number;
  command?: string;
  oldRankName?: string;
  prefix?: string;
  /** The host of the caller's `webhookUrl`; the rest of that address may contain a secret. */
  webhookHost?: string;
  /** SHA-256 (hex) of the caller's `webhookUrl`, if games are allowed to select a webhook by its address. */
  webhookHash?: string;
  /** The caller's reason, in their own words; at most `maxReasonLength` characters are stored. */
  reason?: string;
}

export const maxReasonLength = 200;

/** A role as the history records it: with its name and rank from when the change was planned. */
export type NamedRole = Pick<Role, 'id' | 'name' | 'rank'>;

/**
 * `pending`: in progress · `applied`: the platform confirmed the change, or it involved no write · `refused`: a rule
 * forbids the change · `failed`: the change could not be made · `unknown`: a write may have taken effect, and rankd
 * will reconcile the change. A refused or failed change left the roles as they were, unless `rolesAfter` differs.
 */
export type ChangeState = (typeof changeStates)[number];

export const changeStates = ['pending', 'applied', 'refused', 'failed', 'unknown'] as const;

export const openChangeStates = ['pending', 'unknown'] as const satisfies ChangeState[];

/** The states of a change that has affected its member, or may have. */
export const effectiveStates = ['pending', 'applied', 'unknown'] as const satisfies ChangeState[];

/**
 * `forward`: rankd makes the change · `compensate`: rankd restores the previous roles, because the change could not be
 * completed.
 */
export type ChangePhase = 'forward' | 'compensate';

/** An idempotency key applies for this long after its first request. */
export const idempotencyWindowMs = 24 * 3_600_000;

/** The kinds of change to one extra role; the member's rank stays the same. */
export const roleChangeKinds = ['role_added', 'role_removed'] as const;
export type RoleChangeKind = (typeof roleChangeKinds)[number];

/** A record in the history: a change to a member's rank or extra roles. */
export interface RankChange extends RankRequest {
  /** Set if the change adds or removes an extra role; absent if it changes the rank. */
  kind?: RoleChangeKind;
  id: string;
  /** The unique title of the change's group. All groups share one history. */
  group: string;
  state: ChangeState;
  /** The reason why the change was not applied, or null. */
  code: ErrorCode | null;
  message: string;
  /** The role that `newRankId` means; absent if no plan was approved, e.g. because there is no such role. */
  roleId?: number;
  /**
   * For a rank change, the highest role that counted for the member's rank before. Absent for other changes, and if
   * there was no such role or no plan.
   */
  oldRoleId?: number;
  /** The member's role ids before the change, ascending, base role included; empty if the member was not read. */
  rolesBefore: number[];
  /**
   * The member's role ids after the change: the wanted ones in an open change or a dry run, the known ones once the
   * change has ended.
   */
  rolesAfter: number[];
  /** The roles that the plan gives, takes or leaves in place, ascending by rank; absent if there was no plan. */
  roles?: NamedRole[];
  phase: ChangePhase;
  /** Absent for a change by the operator or the daemon. */
  keyId?: string;
  placeId?: number;
  /** `key:<id>`, `discord:<hash>`, `cli:<user>@<host>`, `web:<user>@<host>` (the dashboard) or `daemon`. */
  by: string;
  /** True for a test key: rankd plans and records the change, but never sends it to the platform. */
  dryRun: boolean;
  /**
   * True if the circuit breaker counts the change as a demotion: the member loses a role without rising, or is
   * suspended.
   */
  demotion: boolean;
  /**
   * The highest rank among the member's roles before the change, after it and after an early return; 0 if there was no
   * plan.
   */
  topRank: number;
  /** True if one of the roles that count for `topRank` is privileged; see `core/rules/ranks.ts`. */
  privileged: boolean;
  requestedAt: number;
  finishedAt?: number;
  /** The id of the oldest change that this one undoes. This change restores the roles from before that one. */
  undoOf?: string;
  /** The id of the undo run that made the change. */
  undoId?: string;
  hold?: HoldPart;
  /** SHA-256 (hex) of the caller's `Idempotency-Key`. */
  idempotencyKey?: string;
  /** SHA-256 (hex) of the request's content, to detect that the idempotency key is reused for a different request. */
  fingerprint?: string;
}

// ---- a hold ----

/**
 * `suspension`: rankd takes all custom roles, and restores them at the end; until then, it refuses ordinary changes to
 * the member. `temporary`: rankd gives a rank or an extra role for a limited time, and restores the previous roles at
 * the end.
 */
export type HoldKind = 'suspension' | 'temporary';

/**
 * `active`: in force · `ending`: the change that restores the roles is open · `ended`: the roles from before the hold
 * were restored · `lifted`: the hold was ended early · `superseded`: a different change to the member replaced the
 * hold, and nothing was restored · `forfeited`: the member left the group or was forgotten · `stuck`: the return was
 * refused; rankd retries it, but an operator should check it.
 */
export type HoldState = 'active' | 'ending' | 'ended' | 'lifted' | 'superseded' | 'forfeited' | 'stuck';

export type EndedState = Extract<HoldState, 'ended' | 'lifted' | 'superseded' | 'forfeited'>;

/** A suspension, or a temporary rank or role. When it ends, rankd restores the roles from before it. */
export interface Hold {
  id: string;
  group: string;
  kind: HoldKind;
  state: HoldState;
  rankeeId: number;
  rankeeName: string;
  /** The roles (ids) to restore, ascending, base role included. */
  rolesBefore: number[];
  /** The role ids that the member holds during the hold. */
  rolesDuring: number[];
  /** The id of the change that began the hold. */
  changeId: string;
  /** The id of the change that ended the hold, or is ending it. */
  returnChangeId?: string;
  rankerId: number;
  rankerName: string;
  reason?: string;
  /** As in `RankChange`. */
  by: string;
  keyId?: string;
  placeId?: number;
  beginsAt: number;
  /** Absent if the hold lasts until it is lifted. */
  endsAt?: number;
  endedAt?: number;
  /** The time when a read first showed that the member had left the group. */
  awaySince?: number;
  /** The number of failed returns. */
  tries: number;
  nextTryAt?: number;
  /** The reason why the last return of an open hold failed; absent if none has failed. */
  code?: ErrorCode;
  /** The message of the last failed return or of the hold's end; empty before either. */
  message: string;
}

/**
 * A change's effect on one of its member's holds. `begin`: the hold is in force once the change is applied. `return`:
 * the change restores the roles from before the hold. `renew`: it gives the hold's roles again to a member who left and
 * rejoined. `lift`: it gives a different rank, and ends the hold. `undo`: it restores the roles and holds from before
 * the undone change; `id` is the hold that the undone change had ended or, if there is none, the open hold that the
 * undo ends.
 */
export type HoldPart =
  | { does: 'begin'; id: string; kind: HoldKind; endsAt?: number }
  | { does: 'return'; id: string; as: 'ended' | 'lifted' }
  | { does: 'renew'; id: string }
  | { does: 'lift'; id: string }
  | {
      does: 'undo';
      id: string;
      /** The end of the hold that the undo reverts by reopening the hold. */
      reopens?: HoldEnd;
      /**
       * The end of the hold that the undo reverts, if the hold's time is up: the undo then restores the roles from
       * before the hold, and does not reopen it.
       */
      ends?: HoldEnd;
      /** The previous end of the open hold, if the undone change had reopened the hold: the undo restores this end. */
      recloses?: HoldEnd;
    };

/** The final state of a hold, and the change (id) that ended it. */
export interface HoldEnd {
  as: EndedState;
  by: string;
}

// ---- the audit log ----

export interface AuditEvent {
  id: number;
  at: number;
  /** e.g. `cli:<user>@<host>`, `web:<user>@<host>` (the dashboard), `key:<id>`, `discord:<hash>` or `daemon`. */
  by: string;
  /** e.g. `key.create`, `whitelist.add`, `rank.refused`. */
  action: string;
  /** The id of the subject, e.g. a key, place or change. */
  subject: string;
  detail: Record<string, unknown>;
}
