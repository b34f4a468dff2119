import type { RankChange } from '../core/model.ts';

/** An Idempotency-Key as a request brings it. In each group, a key of the API has its own. */
export interface IdempotencySlot {
  keyId: string;
  idempotencyKey: string;
  group: string;
}

export interface IdempotencyClaim extends IdempotencySlot {
  /** What the request asks for: two requests with the same fingerprint are the same. */
  fingerprint: string;
  /** Changes from before this time do not count (epoch milliseconds). */
  since: number;
}

/** How an Idempotency-Key stood when it was claimed. `change` is the one that it already stands for, in whatever state. */
export type IdempotencyStanding =
  | { is: 'claimed' }
  | { is: 'running'; fingerprint: string }
  | { is: 'used'; change: RankChange };

/**
 * The requests with an Idempotency-Key that are in flight. When a node ends, its claims end with it. A claim of a live node that no request in
 * its process holds, because its release failed or its answer was lost, is free as soon as the store answers.
 */
export interface IdempotencyStore {
  /**
   * Claims the key for a request of this handle, unless it stands for a change already, or another request has claimed it, here or at any
   * other handle. Of all that claim it at once, one succeeds.
   */
  claimIdempotencyKey(claim: IdempotencyClaim): Promise<IdempotencyStanding>;
  /** Gives back a claim of this handle. */
  releaseIdempotencyKey(slot: IdempotencySlot): Promise<void>;
}
