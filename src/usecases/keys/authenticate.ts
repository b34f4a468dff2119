import type { RankdError } from '../../base/errors.ts';
import { invalidKey, noPlace, wrongMode } from '../../core/access.ts';
import { hashKey, keyMode } from '../../core/api-key.ts';
import type { KeyMode } from '../../core/model.ts';
import type { KeyRecord, Store } from '../../ports/index.ts';

/** The facts that a secret contains without a lookup. */
export interface KeyFingerprint {
  /** SHA-256, in hex. */
  hash: string;
  mode: KeyMode;
}

const createHint = 'rankd key create NAME';
const malformed = invalidKey({ reason: 'malformed' }, createHint);
const unknown = invalidKey({ reason: 'unknown' }, createHint);

/** The fingerprint of a secret, or the refusal of a text that is not an API key. */
export function fingerprintOf(secret: string): KeyFingerprint | RankdError {
  const mode = keyMode(secret);
  return mode === undefined ? malformed : { hash: hashKey(secret), mode };
}

/**
 * The record of a key, or the refusal of an unknown secret. It does not check the key's permissions. Returns a promise
 * only if the store does.
 */
export function authenticate(
  { store }: { store: Pick<Store, 'lookUpKey'> },
  { fingerprint: { hash, mode }, placeId }: { fingerprint: KeyFingerprint; placeId: number | undefined },
): KeyRecord | RankdError | Promise<KeyRecord | RankdError> {
  const found = store.lookUpKey({ hash, placeId: placeId ?? noPlace });
  return found instanceof Promise ? found.then((record) => verified(record, mode)) : verified(found, mode);
}

function verified(record: KeyRecord | undefined, mode: KeyMode): KeyRecord | RankdError {
  if (record === undefined) return unknown;
  return record.key.mode === mode ? record : wrongMode(record.key);
}
