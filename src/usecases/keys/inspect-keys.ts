import { keyState } from '../../core/access.ts';
import type { AuditEvent, Key, KeySecret, WhitelistEntry } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

const dayMs = 86_400_000;
const unusedNoticeMs = 7 * dayMs;
const expiryNoticeMs = 14 * dayMs;
/** Long enough to restart a game's servers. */
const retiringNoticeMs = 6 * 3_600_000;
const refusalsRead = 1_000;

/** Possible problems with a key that is still accepted. */
export interface KeyInspection {
  key: Key;
  /** True if the key was created more than a week ago and has never been used. */
  isUnused: boolean;
  expiresSoon: boolean;
  /** The old secret of a rotated key, if it expires within a few hours and has been used since the rotation. */
  retiring?: KeySecret | undefined;
  /** True if the key's whitelist has an active place, or if the key does not need one. */
  hasPlace: boolean;
  /**
   * Places that are not whitelisted and from which the key was refused in the last week. 0 means an unpublished game.
   */
  unlistedPlaces: number[];
}

export async function inspectKeys({ store, clock }: Pick<Ports, 'store' | 'clock'>): Promise<KeyInspection[]> {
  const now = clock.now();
  const keys = (await store.listKeys()).filter((key) => ['active', 'rotating'].includes(keyState(key, now)));
  const entries = await store.listEntries({});
  const refusals = await store.listAudit({
    since: now - unusedNoticeMs,
    limit: refusalsRead,
    action: 'caller.refused',
    subject: 'place_not_whitelisted',
  });
  return keys.map((key) => {
    const places = entries.filter(({ keyId }) => keyId === key.id);
    return {
      key,
      isUnused: isUnused(key, now),
      expiresSoon: key.expiresAt !== undefined && key.expiresAt - now < expiryNoticeMs,
      retiring: key.secrets.find((secret) => isStillUsed(secret, now)),
      hasPlace: key.isForDiscord || key.isAnyPlace === true || places.some(({ active }) => active),
      unlistedPlaces: unlistedPlaces(key, places, refusals),
    };
  });
}

export interface OldSecretInUse {
  keyName: string;
  lastUsedAt: number;
  lastPlaceId: number | undefined;
  expiresAt: number;
}

/**
 * Lists the old secrets that were used after their replacement. Callers, usually game servers, must switch to the new
 * secret before the old one expires.
 */
export async function oldSecretsInUse({ store, clock }: Pick<Ports, 'store' | 'clock'>): Promise<OldSecretInUse[]> {
  const now = clock.now();
  const rotating = (await store.listKeys({ acceptedAt: now })).filter(({ secrets }) => secrets.length > 1);
  return rotating.flatMap(({ name: keyName, secrets }) =>
    secrets.flatMap(({ replacedAt, expiresAt, lastUsedAt, lastPlaceId }) => {
      const isOver = replacedAt === undefined || expiresAt === undefined || expiresAt <= now;
      if (isOver || lastUsedAt === undefined || lastUsedAt <= replacedAt) return [];
      return [{ keyName, lastUsedAt, lastPlaceId, expiresAt }];
    }),
  );
}

function isUnused({ createdAt, secrets, isForDiscord }: Key, now: number): boolean {
  if (isForDiscord) return false; // it has no secret; only the history shows its uses
  return now - createdAt > unusedNoticeMs && secrets.every(({ lastUsedAt }) => lastUsedAt === undefined);
}

function isStillUsed({ replacedAt, expiresAt, lastUsedAt }: KeySecret, now: number): boolean {
  if (replacedAt === undefined || expiresAt === undefined || lastUsedAt === undefined) return false;
  return lastUsedAt > replacedAt && expiresAt > now && expiresAt - now < retiringNoticeMs;
}

function unlistedPlaces({ id }: Key, entries: WhitelistEntry[], refusals: AuditEvent[]): number[] {
  const ofThisKey = refusals.filter(({ detail }) => detail['keyId'] === id);
  const places = new Set(ofThisKey.map(({ detail }) => Number(detail['placeId'])));
  return [...places].filter((place) => !entries.some(({ placeId }) => placeId === place));
}
