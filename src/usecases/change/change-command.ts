import type { Direction, KeyRules, RankRequest } from '../../core/model.ts';

/** Who asks for a change, and how far this caller may go. */
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
  idempotency?: Idempotency;
}

/** The SHA-256 (hex) of the caller's `Idempotency-Key`, which may be a secret by mistake, and of the request it came with. */
export interface Idempotency {
  key: string;
  fingerprint: string;
}
