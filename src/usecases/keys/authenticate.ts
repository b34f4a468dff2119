import { describeRefusal, type RankdError } from '../../base/errors.ts';
import { accessChecks, invalidKey, noPlace, wrongMode } from '../../core/access.ts';
import { hashKey, keyMode } from '../../core/api-key.ts';
import type { Key, KeyMode, KeyRecord } from '../../core/model.ts';
import type { Ports, Store } from '../../ports/index.ts';

export interface KeyFingerprint {
  /** SHA-256, in hex. */
  hash: string;
  mode: KeyMode;
}

const createHint = 'rankd key create NAME';
const malformed = invalidKey({ reason: 'malformed' }, createHint);
const unknown = invalidKey({ reason: 'unknown' }, createHint);

export function fingerprintOf(secret: string): KeyFingerprint | RankdError {
  const mode = keyMode(secret);
  return mode === undefined ? malformed : { hash: hashKey(secret), mode };
}

/**
 * Returns the key's record or, if the secret is unknown or has the wrong mode, a refusal. Does not check the key's
 * permissions. Returns a promise only if the store does.
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

export interface KeyVerdict {
  /** `undefined` if no key ever had the secret. */
  key: Key | undefined;
  /** The reason for the refusal, worded for the operator; `undefined` if the secret is accepted. */
  reason: string | undefined;
}

/**
 * Checks a secret as the API would, for the group that the store serves. Skips the scope check and, if no place is
 * given, the whitelist check.
 */
export async function verifyKey(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { secret, placeId }: { secret: string; placeId: number | undefined },
): Promise<KeyVerdict> {
  const mode = keyMode(secret);
  if (mode === undefined) return { key: undefined, reason: describeRefusal({ reason: 'malformed' }) };
  await store.freshen();
  const record = await store.lookUpKey({ hash: hashKey(secret), placeId: placeId ?? noPlace });
  if (record === undefined) return { key: undefined, reason: describeRefusal({ reason: 'unknown' }) };
  const group = (await store.findServedGroup())?.group;
  return { key: record.key, reason: whyRefused(record, { mode, group, placeId, now: clock.now() }) };
}

function whyRefused(
  record: KeyRecord,
  { mode, group, placeId, now }: { mode: KeyMode; group: string | undefined; placeId: number | undefined; now: number },
): string | undefined {
  const question = { scope: 'rank', group, placeId, now } as const;
  const checks = accessChecks
    .filter(({ name }) => name !== 'scope' && (name !== 'whitelist' || placeId !== undefined))
    .map((check) => check.refusal(record, question));
  const refusals = [record.key.mode === mode ? undefined : wrongMode(record.key), ...checks];
  const refusal = refusals.find((found) => found !== undefined);
  return refusal?.code === 'invalid_key' && refusal.details ? describeRefusal(refusal.details) : refusal?.message;
}
