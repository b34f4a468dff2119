import { RankdError } from '../../base/errors.ts';
import { invalidKey, wrongMode } from '../../core/access.ts';
import { hashKey, keyMode } from '../../core/api-key.ts';
import type { KeyMode } from '../../core/model.ts';
import type { KeyRecord, Store } from '../../ports/index.ts';

/** What an `Authorization` header holds, as far as it can be told without asking the store. */
export interface KeyFingerprint {
  /** SHA-256, in hex. */
  hash: string;
  mode: KeyMode;
}

const bearer = /^bearer +(\S+) *$/i;
const createHint = 'rankd key create NAME';
const malformed = invalidKey({ reason: 'malformed' }, createHint);
const noSuchKey = invalidKey({ reason: 'unknown' }, createHint);
const missing = RankdError.withoutStack(
  'missing_authorization',
  'Send the API key in the header "Authorization: Bearer <key>".',
  { details: { reason: 'no_key' } },
);

/** The API key of an `Authorization` header, or the refusal. */
export function fingerprintOf(authorization: string | undefined): KeyFingerprint | RankdError {
  const secret = bearer.exec(authorization ?? '')?.[1];
  if (secret === undefined) return missing;
  const mode = keyMode(secret);
  if (mode === undefined) return malformed;
  return { hash: hashKey(secret), mode };
}

/** The record of a key, or the refusal; whether it may do anything is not decided here. */
export function authenticate(
  { store }: { store: Pick<Store, 'lookUpKey'> },
  { apiKey, placeId }: { apiKey: KeyFingerprint | RankdError; placeId: number },
): KeyRecord | RankdError {
  if (apiKey instanceof RankdError) return apiKey;
  const presented = store.lookUpKey({ hash: apiKey.hash, placeId });
  if (presented === undefined) return noSuchKey;
  return presented.key.mode === apiKey.mode ? presented : wrongMode(presented.key);
}
