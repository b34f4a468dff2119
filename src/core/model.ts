import type { ErrorCode } from '../base/errors.ts';

/** The domain's words. Plain data, no behaviour; ids are integers up to 2^53-1, times are epoch milliseconds. */

// ---- the group on the platform ----

/**
 * `base`: the role every member holds; `guest`: non-members; `owner`: the group owner's; `unclear`: one of several of which one is the
 * base role, as long as the platform does not tell which; `private`: the group's list of roles omits it. None of these is ever written.
 */
export type RoleKind = 'guest' | 'base' | 'owner' | 'unclear' | 'private' | 'custom';

export interface Role {
  id: number;
  name: string;
  /** 0..255; two roles can share one. */
  rank: number;
  kind: RoleKind;
  /** What it may do to others; absent if the platform does not show it. */
  powers?: Power[];
}

/** What makes a role worth stealing: each is a permission of the role on the platform, or several of one kind. */
export type Power = 'change ranks' | 'accept members' | 'remove members' | 'manage the group';

export interface Group {
  id: number;
  name: string;
  memberCount: number;
  /** The user who owns the group; absent if nobody does. */
  ownerId?: number;
  /** True if the platform has locked the group: nothing in it can be changed. */
  isLocked?: boolean;
}

/** A member with every role that the member holds, as the platform told it. The base role may or may not be listed. */
export interface Member {
  userId: number;
  roleIds: number[];
  /** When the user joined the group (epoch milliseconds by the platform's clock); absent if the platform does not say. */
  joinedAt?: number;
}

/** What the platform says of the credential rankd acts with. */
export interface Credential {
  /** `untold`: the platform answers, and does not say. */
  state: 'valid' | 'disabled' | 'expired' | 'invalid' | 'untold';
  /** With `invalid`: the platform's own words, e.g. `401: Invalid API Key`. */
  refusal?: string;
  /** The acting account; absent if the platform does not say. */
  userId?: number;
  /** Whether it may change roles in this group; absent if the platform does not say. */
  canWrite?: boolean;
  expiresAt?: number;
}

/** The account that rankd acts as, and how far it reaches. */
export interface ActingAccount {
  userId: number;
  /** The group's owner, where it has one. */
  ownerId: number | undefined;
  /** Its highest rank over all roles; it reaches only what is strictly below. 0: it is not a member of the group. */
  rank: number;
  /** Whether a role of it lets it change ranks at all; absent if the platform does not show that. */
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

export const scopes = ['verify', 'rank', 'suspend'] as const;
export type Scope = (typeof scopes)[number];

/** What a key may do unless something else is said. */
export const usualScopes: readonly Scope[] = ['verify', 'rank'];

export type KeyMode = 'live' | 'test';

/** Up or down, as the member's highest rank goes. */
export const directions = ['promote', 'demote'] as const;
export type Direction = (typeof directions)[number];

/** How a key narrows the policy, and how much may come with it. Absent: the policy alone decides. */
export interface KeyRules {
  /** The key may give no rank above this one. */
  maxRank?: number;
  /** The key may give no rank below this one. */
  minRank?: number;
  /** The role (id) that `maxRank` was named by: its rank of today counts. */
  maxRankRole?: number;
  /** The same for `minRank`. */
  minRankRole?: number;
  /** The key may change ranks in this direction only; absent: in both. */
  direction?: Direction;
  selfRank?: 'deny';
  /** True for the key of a game that ranks by itself: no player needs to be behind its changes. */
  isSystem?: boolean;
  /** True if it may give and take privileged roles even where only the operator may. */
  isPrivileged?: boolean;
  /** True if the key is good without a place, and from any: for what is no game, such as a bot or a web shop. */
  isAnyPlace?: boolean;
  /** Rank requests a minute, instead of the limit that is set for all keys. */
  ratePerMinute?: number;
}

/** An API key's record. The secret itself is never kept: only the SHA-256 of each secret still accepted. */
export interface Key extends KeyRules {
  id: string;
  name: string;
  mode: KeyMode;
  scopes: Scope[];
  createdAt: number;
  expiresAt?: number;
  revokedAt?: number;
  /** Set while the circuit breaker pauses the key. */
  pausedAt?: number;
  /** When a pause was last lifted. */
  resumedAt?: number;
  /** True if it was made on a simulated group: it is accepted on no other. */
  isSimulated?: boolean;
  /** Set if the configuration declares the key, e.g. `rankd.yaml:31`; then only the configuration can change it. */
  declaredIn?: string;
  /** Newest first; a second one only while a rotation's overlap lasts. */
  secrets: KeySecret[];
}

export interface KeySecret {
  /** What may be shown of it, e.g. `rk_live_3kf…Zp9`. */
  masked: string;
  createdAt: number;
  /** Set on the old secret of a rotation: when the newer one was made. */
  replacedAt?: number;
  /** Set on the old secret of a rotation: until when it is accepted. */
  expiresAt?: number;
  /** When and from which place a request was last allowed with it, as far as the daemon has kept it. */
  lastUsedAt?: number;
  lastPlaceId?: number;
}

export type KeyState = 'active' | 'rotating' | 'expired' | 'revoked';

export interface WhitelistEntry {
  keyId: string;
  /** A place or universe id: whatever the game sends as placeid. */
  placeId: number;
  active: boolean;
  note: string;
  addedAt: number;
  /** Set if the configuration declares the entry, e.g. `rankd.yaml:38`; then only the configuration can change it. */
  declaredIn?: string;
}

/** A key as the configuration declares it. */
export interface KeyDeclaration {
  name: string;
  /** SHA-256 of its secret, in hex. */
  hash: string;
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

/** What the store knows about the key behind a secret. */
export interface KeyRecord {
  workspace: Workspace;
  key: Key;
  /** The id of the secret, e.g. for `recordKeyUses`. */
  secretId: string;
  /** Set if the secret was replaced by a newer one in a rotation (`since`). It is accepted until `until`. */
  retiring?: { since: number; until: number };
  /** The whitelist entry of the place that was asked about. */
  entry?: WhitelistEntry | undefined;
}

// ---- a rank change ----

/** What a caller asks for, validated. `newRankId` is a rank number (1..255) or a role id (above 255). */
export interface RankRequest {
  rankeeId: number;
  rankeeName: string;
  /** 0: not a player. */
  rankerId: number;
  rankerName: string;
  newRankId: number;
  command?: string;
  oldRankName?: string;
  prefix?: string;
  /** The host of the caller's `webhookUrl`; the rest of that address can carry a secret. */
  webhookHost?: string;
  /** SHA-256 (hex) of the caller's `webhookUrl`, if it may choose among the operator's own webhooks. */
  webhookHash?: string;
  /** Why the change is wanted, in the caller's own words; at most `maxReasonLength` characters are kept. */
  reason?: string;
}

export const maxReasonLength = 200;

/** A role as the history names it: what it was called when the change was planned. */
export type NamedRole = Pick<Role, 'id' | 'name' | 'rank'>;

/**
 * `pending`: it is being worked on · `applied`: the platform was seen to hold the new rank · `refused`: the answer is no · `failed`: it
 * could not be done · `unknown`: it was sent, could not be confirmed, and is to be reconciled. A change that was refused or failed left
 * the roles as they were. If others changed the member meanwhile, or nothing could be put back, `rolesAfter` is what was found.
 */
export type ChangeState = (typeof changeStates)[number];

export const changeStates = ['pending', 'applied', 'refused', 'failed', 'unknown'] as const;

/** The states of a change that has no outcome yet. */
export const openChangeStates = ['pending', 'unknown'] as const satisfies ChangeState[];

/** The states of a change that changed its member, or may have. */
export const effectiveStates = ['pending', 'applied', 'unknown'] as const satisfies ChangeState[];

/** Whether a change is on its way to its goal, or is being put back after a refusal half-way. */
export type ChangePhase = 'forward' | 'compensate';

/** For how long an idempotency key stands for the first request that it came with, in milliseconds. */
export const idempotencyWindowMs = 24 * 3_600_000;

/** A rank change as the history keeps it. */
export interface RankChange extends RankRequest {
  id: string;
  /** The group that it was made in, in words that no two groups share. All groups have one history. */
  group: string;
  state: ChangeState;
  /** Why it is not applied, or null. */
  code: ErrorCode | null;
  /** The sentence the caller got. */
  message: string;
  /** The role that `newRankId` meant; absent if it meant none. */
  roleId?: number;
  /** The highest role that the member held before, of those that count; absent if there was none, or no plan. */
  oldRoleId?: number;
  /** Roles held before, base role included, ascending by id; empty if the member was not read. */
  rolesBefore: number[];
  /** Roles held after: those that are wanted while the change is open, and those that were seen once it has ended. */
  rolesAfter: number[];
  /** The roles that the plan gave, took or left, ascending by rank; absent if there was no plan. */
  roles?: NamedRole[];
  phase: ChangePhase;
  /** Absent for a change by the operator. */
  keyId?: string;
  /** Absent for a change by the operator. */
  placeId?: number;
  /** `key:<id>`, `cli:<user>@<host>`, or `web:<user>@<host>` by the page. */
  by: string;
  /** True for a test key: the change is planned and answered, but never written. */
  dryRun: boolean;
  /** True if the breaker counts it as a demotion: the member goes down, or to another role of the same rank. */
  demotion: boolean;
  /** The highest rank among the roles held before and wanted after; 0 if the member was not read. */
  topRank: number;
  /** True if a role with power over others is among them; see `core/rules/privileged-roles.ts`. */
  privileged: boolean;
  requestedAt: number;
  finishedAt?: number;
  /** The oldest of the changes that this one took back: the roles from before it were put back. */
  undoOf?: string;
  /** The run of `history undo` that it belongs to. */
  undoId?: string;
  /** What the change means for a hold of the member; see `core/holds.ts`. */
  hold?: HoldPart;
  /** SHA-256 (hex) of the caller's `Idempotency-Key`. */
  idempotencyKey?: string;
  /** SHA-256 (hex) of the request that the idempotency key came with. */
  fingerprint?: string;
}

// ---- a hold ----

/**
 * `suspension`: all roles are taken, and given back at the end; nobody else changes the member meanwhile. `temporary`: an ordinary rank
 * that is taken back at the end.
 */
export type HoldKind = 'suspension' | 'temporary';

/**
 * `active`: in force until `endsAt` · `ending`: its return is an open rank change · `ended`: the roles from before were seen · `lifted`: the
 * same, by a person and early · `superseded`: somebody else changed the member, and nothing was given back · `forfeited`: the member left
 * the group · `stuck`: the return is refused, and a person has to look.
 */
export type HoldState = 'active' | 'ending' | 'ended' | 'lifted' | 'superseded' | 'forfeited' | 'stuck';

/** The states of a hold that is over. */
export type EndedState = Extract<HoldState, 'ended' | 'lifted' | 'superseded' | 'forfeited'>;

/** A rank change with an end: for a time the member holds other roles, then exactly the roles from before. */
export interface Hold {
  id: string;
  group: string;
  kind: HoldKind;
  state: HoldState;
  rankeeId: number;
  rankeeName: string;
  /** Role ids, ascending, base role included: those that the member gets back. */
  rolesBefore: number[];
  /** Those that the member holds meanwhile. */
  rolesDuring: number[];
  /** The change that began it. */
  changeId: string;
  /** The change that ended it, or is about to. */
  returnChangeId?: string;
  rankerId: number;
  rankerName: string;
  reason?: string;
  /** As in `RankChange`. */
  by: string;
  keyId?: string;
  placeId?: number;
  beginsAt: number;
  /** Absent if only a person ends it. */
  endsAt?: number;
  endedAt?: number;
  /** When the member was first seen to have left the group. */
  awaySince?: number;
  /** How often the return was tried in vain, and when it is tried next (epoch milliseconds). */
  tries: number;
  nextTryAt?: number;
  /** Why it could not be ended yet, or was ended otherwise; empty if there is nothing to say. */
  code?: ErrorCode;
  message: string;
}

/**
 * What a change means for a hold of its member. `begin`: the hold is in force once the change is applied. `return`: the change gives the
 * roles from before back. `renew`: it gives the roles of the hold again to a member who left and came back. `lift`: it gives another
 * rank, and ends the hold. `undo`: it puts back the roles from before another change, and the holds with them: `id` is the hold that this one had
 * ended, or else the one that it had begun or reopened.
 */
export type HoldPart =
  | { does: 'begin'; id: string; kind: HoldKind; endsAt?: number }
  | { does: 'return'; id: string; as: 'ended' | 'lifted' }
  | { does: 'renew'; id: string }
  | { does: 'lift'; id: string }
  | {
      does: 'undo';
      id: string;
      /** The state that the hold is reopened from; absent if it stays over. */
      reopens?: EndedState;
      /** True if the hold would be reopened, but its time is up: the roles from before it are given back. */
      isDue?: true;
      /** The member's open hold had been reopened by the undone change: how it had ended before that, and by which change. */
      recloses?: { as: EndedState; by: string };
    };

// ---- the audit ----

export interface AuditEvent {
  id: number;
  at: number;
  /** `cli:<user>@<host>`, `web:<user>@<host>`, `key:<id>` or `daemon`. */
  by: string;
  /** e.g. `key.create`, `whitelist.add`, `rank.refused`. */
  action: string;
  /** What it was done to: a key, place or change id. */
  subject: string;
  detail: Record<string, unknown>;
}
