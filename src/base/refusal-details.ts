/** Why a caller is refused, in words for the operator. Callers are not told: they would learn which keys exist. */
const reasonTexts = {
  no_key: 'the request has no game key',
  malformed: 'not a game key, or mistyped',
  unknown: 'no such key',
  wrong_mode: ({ mode }: Partial<RefusalDetails>) => `the key is for ${mode} use and its secret is not`,
  workspace_suspended: 'the workspace is suspended',
  not_top_plan: 'the workspace is not on the top plan',
  revoked: 'the key is revoked',
  expired: 'the key is expired',
  rotated_out: 'this secret of the key was rotated out',
  simulated: 'the key was made on the simulated group and is good for no other',
  missing_scope: 'the key lacks the scope for this',
  not_listed: 'the place is not on the whitelist of the key',
  disabled: 'the place is disabled on the whitelist of the key',
  no_place: 'the request names no place, and the key needs one',
  unpublished: 'the game was never published, so it has no place id',
  roblox_id_mismatch: 'the header Roblox-Id names another place, or none',
  paused: ({ why }: Partial<RefusalDetails>) => (why === undefined ? 'the key is paused' : `the key is paused: ${why}`),
};

export type RefusalReason = keyof typeof reasonTexts;

/** The facts behind a refusal, for programs: nobody has to read them out of a sentence. */
export interface RefusalDetails {
  reason: RefusalReason;
  keyId?: string;
  /** Present if the change paused the key. */
  keyName?: string;
  placeId?: number;
  /** The use that the key is for. */
  mode?: 'live' | 'test';
  /** True if this very change paused the key. `why` then says which limit it would have exceeded. */
  pausedNow?: boolean;
  why?: string;
}

/** The refusal in words for the log and the operator, e.g. `the key is revoked (key_8TqLx0vBz3Rw)`. */
export function describeRefusal(details: RefusalDetails): string {
  const { reason, keyId, placeId } = details;
  const subjects = [keyId, placeId === undefined ? undefined : `place ${placeId}`].filter((one) => one !== undefined);
  const text = reasonTexts[reason];
  const words = typeof text === 'string' ? text : text(details);
  return subjects.length === 0 ? words : `${words} (${subjects.join(', ')})`;
}
