import type { ErrorCode } from '../base/errors.ts';

/** The domain's words. Plain data, no behaviour; ids are integers up to 2^53-1, times are epoch milliseconds. */

// ---- the group on the platform ----

/** `base`: the role every member holds; `guest`: non-members; `owner`: the group owner's. None of the three is ever written. */
export type RoleKind = 'guest' | 'base' | 'owner' | 'custom';

export interface Role {
  id: number;
  name: string;
  /** 0..255; two roles can share one. */
  rank: number;
  kind: RoleKind;
  /** What it may do to others; absent where the platform does not show it. */
  powers?: Power[];
}

/** What makes a role worth stealing: each is a permission of the role on the platform, or several of one kind. */
export type Power = 'change ranks' | 'accept members' | 'remove members' | 'manage the group';

export interface Group {
  id: number;
  name: string;
  memberCount: number;
  /** The owning user; absent where nobody owns the group. */
  ownerId?: number;
}

/** A member and every role held, as the platform told it: the base role may or may not be listed. */
export interface Member {
  userId: number;
  roleIds: number[];
}

/** What the platform says of the credential rankd acts with. */
export interface Credential {
  state: 'valid' | 'disabled' | 'expired' | 'invalid';
  /** The acting account; absent where the platform does not say. */
  userId?: number;
  /** Whether it may change roles in this group; absent where the platform does not say. */
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
  /** Whether a role of it lets it change ranks at all; absent where the platform does not show that. */
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

export const scopes = ['verify', 'rank'] as const;
export type Scope = (typeof scopes)[number];

export type KeyMode = 'live' | 'test';

/** Up or down, as the member's highest rank goes. */
export const directions = ['promote', 'demote'] as const;
export type Direction = (typeof directions)[number];

/** How a key narrows the policy, and how much may come with it. Absent: the policy alone decides. */
export interface KeyRules {
  /** Nothing above this rank. */
  maxRank?: number;
  /** Nothing below this rank. */
  minRank?: number;
  /** Only changes in this direction; absent: both. */
  direction?: Direction;
  selfRank?: 'deny';
  /** True for the key of a game that ranks by itself: with it, no player need be behind a change. */
  isSystem?: boolean;
  /** True if it may give and take privileged roles even where only the operator may. */
  isPrivileged?: boolean;
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
  /** Set while paused by the circuit breaker. */
  pausedAt?: number;
  /** When a pause was last lifted. */
  resumedAt?: number;
  /** Set where the configuration declares it, which alone can change it then: `rankd.yaml:31`. */
  declaredIn?: string;
  /** Newest first; a second one only while a rotation's overlap lasts. */
  secrets: KeySecret[];
}

export interface KeySecret {
  /** What may be shown of it, e.g. `rk_live_3kf…Zp9`. */
  masked: string;
  createdAt: number;
  /** Set on the old secret of a rotation: a newer one was made then. */
  replacedAt?: number;
  /** Set on the old secret of a rotation: accepted until then. */
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
  /** Set where the configuration declares it, which alone can change it then: `rankd.yaml:38`. */
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
}

/**
 * `pending`: being worked on · `applied`: the platform was seen to hold it · `refused`: answered no · `failed`: could not be
 * done · `unknown`: sent, not confirmed, still being found out. What was refused or failed left the roles as they were; where
 * others changed the member meanwhile, or nothing could be put back, `rolesAfter` is what was found.
 */
export type ChangeState = 'pending' | 'applied' | 'refused' | 'failed' | 'unknown';

/** Whether a change is on its way to its goal, or is being put back after a refusal half-way. */
export type ChangePhase = 'forward' | 'compensate';

/** For how long an idempotency key stands for the request it came with first, in milliseconds. */
export const idempotencyWindowMs = 24 * 3_600_000;

/** A rank change as the history keeps it. */
export interface RankChange extends RankRequest {
  id: string;
  /** The group it was made in: one text for each that there can be. The history of all of them is one. */
  group: string;
  state: ChangeState;
  /** Why it is not applied, or null. */
  code: ErrorCode | null;
  /** The sentence the caller got. */
  message: string;
  /** The role `newRankId` meant; absent where it meant none. */
  roleId?: number;
  /** Roles held before, base role included, ascending by id; empty where the member was not read. */
  rolesBefore: number[];
  /** Roles held after: wanted while pending, seen once finished. */
  rolesAfter: number[];
  phase: ChangePhase;
  /** Absent for a change by the operator. */
  keyId?: string;
  /** Absent for a change by the operator. */
  placeId?: number;
  /** `key:<id>` or `cli:<user>@<host>`. */
  by: string;
  /** True for a test key: decided and answered, never written. */
  dryRun: boolean;
  /** Counted as one by the breaker: down, or to another role of the same rank. */
  demotion: boolean;
  /** The highest rank among the roles held before and wanted after; 0 where the member was not read. */
  topRank: number;
  /** True if a role with power over others is among them; see `core/rules/privileged-roles.ts`. */
  privileged: boolean;
  requestedAt: number;
  finishedAt?: number;
  /** The oldest of the changes that this one took back: the roles from before it were put back. */
  undoOf?: string;
  /** The run of `history undo` that it belongs to. */
  undoId?: string;
  /** SHA-256 (hex) of the caller's `Idempotency-Key`. */
  idempotencyKey?: string;
  /** SHA-256 (hex) of the request the idempotency key came with. */
  fingerprint?: string;
}

// ---- the audit ----

export interface AuditEvent {
  id: number;
  at: number;
  /** `cli:<user>@<host>`, `key:<id>` or `daemon`. */
  by: string;
  /** e.g. `key.create`, `whitelist.add`, `rank.refused`. */
  action: string;
  /** What it was done to: a key, place or change id. */
  subject: string;
  detail: Record<string, unknown>;
}
