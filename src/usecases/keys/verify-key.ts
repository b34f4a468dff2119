import { describeRefusal } from '../../base/errors.ts';
import { accessChecks, noPlace, wrongMode } from '../../core/access.ts';
import { hashKey, keyMode } from '../../core/api-key.ts';
import type { Key, KeyMode, KeyRecord } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

/** The check of a secret. */
export interface KeyVerdict {
  /** `undefined` if no key ever had the secret. */
  key: Key | undefined;
  /** The reason it is refused, in the operator's words; `undefined` if it is accepted. */
  reason: string | undefined;
}

/**
 * Checks a secret like the API of the group that the store serves. The whitelist is checked only if a place is given.
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

/** The first problem; `undefined` if there is none. */
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
