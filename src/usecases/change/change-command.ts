import type { Direction, KeyRules, RankRequest } from '../../core/model.ts';
import type { RoleName } from '../../core/role-name.ts';

/** The caller behind a change, and the caller's limits. */
export interface ChangeCaller {
  /** The name in history and audit: `key:<id>` or `cli:<user>@<host>`. */
  by: string;
  keyId?: string;
  placeId?: number;
  /** The secret of the request's key. */
  secretId?: string;
  /** The key's restrictions of the policy; absent for the operator. */
  rules?: KeyRules;
  /** True for a test key: everything is checked and answered, but nothing is written. */
  dryRun: boolean;
}

export interface ChangeCommand {
  caller: ChangeCaller;
  request: RankRequest;
  /** Requests the next rank up or down from the member's rank at that time, instead of `newRankId`. */
  step?: Direction;
  /** The number of ranks up or down; 1 by default. */
  stepCount?: number;
  /** Requests the role with this name, instead of `newRankId`. */
  roleName?: string;
  /** The change applies only if this is the member's rank. */
  ifRank?: RoleName;
  /** A member who is as high already, or higher, keeps the rank. */
  atLeast?: boolean;
  /** The change begins a hold, or ends one. */
  hold?: HoldAsked;
  /**
   * The list of members that the change belongs to. Each of its changes has this text in `command`, and a member whom
   * the list has reached is not changed again.
   */
  list?: string;
  idempotency?: Idempotency;
}

/**
 * `suspension`: the member gets `role`, or the configured one, instead of `newRankId`, and loses all others.
 * `temporary`: the requested rank is taken back at its end. `lift`: the change ends the member's hold `id`.
 */
export type HoldAsked =
  | { kind: 'suspension'; role?: RoleName; endsAt?: number }
  | { kind: 'temporary'; endsAt?: number }
  | { kind: 'lift'; id: string };

/**
 * The SHA-256 (hex) of the caller's `Idempotency-Key`, which may be a secret by mistake, and of the request with it.
 */
export interface Idempotency {
  key: string;
  fingerprint: string;
}
