import type { Direction, KeyRules, RankRequest } from '../../core/model.ts';
import type { RoleName } from '../../core/role-name.ts';

/** The caller behind a change, and the caller's limits. */
export interface ChangeCaller {
  /** The name in history and audit: `key:<id>` or `cli:<user>@<host>`. */
  by: string;
  keyId?: string;
  placeId?: number;
  /** The secret of the key that the request came with. */
  secretId?: string;
  /** How the key narrows the policy; absent for the operator. */
  rules?: KeyRules;
  /** True for a test key: everything is checked and answered, nothing is written. */
  dryRun: boolean;
}

export interface ChangeCommand {
  caller: ChangeCaller;
  request: RankRequest;
  /** Asks for the next rank up or down from what the member holds by then, instead of `newRankId`. */
  step?: Direction;
  /** How many ranks up or down; one unless given. */
  stepCount?: number;
  /** Asks for the role with this name, instead of `newRankId`. */
  roleName?: string;
  /** The change begins a hold, or ends one. */
  hold?: HoldAsked;
  /** The change belongs to a list of members, which has this text in the `command` of each of its changes: a member whom it has reached is not changed again. */
  list?: string;
  idempotency?: Idempotency;
}

/**
 * `suspension`: the member gets `role`, or that of the configuration, instead of `newRankId`, and loses all others. `temporary`: the rank
 * that is asked for is taken back at its end. `lift`: the change ends the member's hold `id`.
 */
export type HoldAsked =
  | { kind: 'suspension'; role?: RoleName; endsAt?: number }
  | { kind: 'temporary'; endsAt?: number }
  | { kind: 'lift'; id: string };

/** The SHA-256 (hex) of the caller's `Idempotency-Key`, which may be a secret by mistake, and of the request it came with. */
export interface Idempotency {
  key: string;
  fingerprint: string;
}
