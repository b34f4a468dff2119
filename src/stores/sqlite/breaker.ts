import { RankdError } from '../../base/errors.ts';
import type { RankChange } from '../../core/model.ts';
import type { MemberLimit } from '../../ports/index.ts';
import type { Connection } from './engine/connection.ts';
import { setPaused } from './keys.ts';

/**
 * The refusal of a change whose key is paused, or is to be from now on because the change would go beyond a limit. The
 * caller throws it once the pause is kept. Called in the transaction that keeps the change, so that changes side by side
 * can't slip through together, and what was asked for before a pause stops with it.
 */
export function tripBreaker(
  db: Connection,
  change: RankChange,
  { limits, now }: { limits: readonly MemberLimit[]; now: number },
): RankdError | undefined {
  const { keyId, rankeeId } = change;
  if (keyId === undefined) return undefined;
  if (isPaused(db, keyId)) return keyPaused(keyId, 'This key was paused before the change began.');
  for (const limit of limits.filter((one) => falls(change, one))) {
    const { byKey, byAll } = countMembers(db, { rankeeId, keyId, limit, now });
    if (byKey > limit.byKey) return pause(db, { keyId, reason: `it was about to ${act(limit, limit.byKey)}`, now });
    if (byAll > limit.byAll)
      return pause(db, { keyId, reason: `all keys together were about to ${act(limit, limit.byAll)}`, now });
  }
  return undefined;
}

function isPaused(db: Connection, keyId: string): boolean {
  return db.get('SELECT 1 FROM keys WHERE id = @keyId AND paused_at IS NOT NULL', { keyId }) !== undefined;
}

/** True where the limit counts such changes. */
function falls({ demotion, topRank }: RankChange, { of }: MemberLimit): boolean {
  return of === 'demotions' ? demotion : topRank >= of.fromRank;
}

/**
 * How many different members keys have changed so, with this one; open changes count, quiet repetitions do not. Lifting the pause
 * of a key begins its count anew. What is dated later than now was before the clock was set back: it does not count as new.
 */
function countMembers(
  db: Connection,
  { limit: { of, since }, ...rest }: { rankeeId: number; keyId: string; limit: MemberLimit; now: number },
): { byKey: number; byAll: number } {
  const others = db.get<{ byKey: number; byAll: number }>(
    `SELECT count(DISTINCT iif(key_id = @keyId, rankee_id, NULL)) AS byKey, count(DISTINCT rankee_id) AS byAll
     FROM rank_changes
     WHERE requested_at <= @now
       AND requested_at >= max(@since, coalesce((SELECT resumed_at FROM keys WHERE id = @keyId AND resumed_at <= @now), 0))
       AND key_id IS NOT NULL AND rankee_id <> @rankeeId AND state IN ('pending', 'applied', 'unknown')
       AND ${of === 'demotions' ? 'demotion = 1' : 'top_rank >= @fromRank'} AND dry_run = 0 AND roles_before <> roles_after`,
    { ...rest, since, ...(of !== 'demotions' && of) },
  );
  return { byKey: (others?.byKey ?? 0) + 1, byAll: (others?.byAll ?? 0) + 1 };
}

function act({ of }: MemberLimit, most: number): string {
  return of === 'demotions'
    ? `demote more than ${most} different members in a short time (policy.breaker.demotions)`
    : `change more than ${most} different members of rank ${of.fromRank} or above in a short time (policy.breaker.high_changes)`;
}

function pause(db: Connection, { keyId, reason, now }: { keyId: string; reason: string; now: number }): RankdError {
  setPaused(db, { keyId, paused: true, reason }, { by: 'daemon', now });
  return keyPaused(keyId, `This key is now paused: ${reason}.`, reason);
}

/** `why` is given if this very change pauses the key. */
function keyPaused(keyId: string, message: string, why?: string): RankdError {
  return new RankdError('key_paused', message, {
    hint: `\`rankd history list --key ${keyId}\` shows its changes; \`rankd key resume ${keyId}\` lifts the pause`,
    details: { reason: 'paused', keyId, ...(why !== undefined && { pausedNow: true, why }) },
  });
}
