import type { RankChange } from '../../core/model.ts';
import { RankdError } from '../../errors.ts';
import type { DemotionLimit } from '../../ports.ts';
import type { Connection } from './connection.ts';
import { setPaused } from './keys.ts';

/**
 * Pauses the key of a demotion that would go beyond the limit, and returns the refusal for the caller to throw once
 * the pause is kept; `undefined` where the demotion is within it. Called in the transaction that keeps the demotion, so
 * that changes side by side can't slip through together.
 */
export function tripBreaker(
  db: Connection,
  { rankeeId, keyId }: RankChange,
  { limit, now }: { limit: DemotionLimit; now: number },
): RankdError | undefined {
  if (keyId === undefined) return undefined;
  const { byKey, byAll } = countDemoted(db, { rankeeId, keyId, since: limit.since });
  if (byKey <= limit.byKey && byAll <= limit.byAll) return undefined;
  const reason =
    byKey > limit.byKey
      ? `it was about to demote more than ${limit.byKey} different members`
      : `all keys together were about to demote more than ${limit.byAll} different members`;
  setPaused(db, { keyId, paused: true, reason }, { by: 'daemon', now });
  return new RankdError('key_paused', `This key is now paused: ${reason} in a short time.`, {
    hint: `\`rankd history list --key ${keyId}\` shows its changes; \`rankd key resume ${keyId}\` lifts the pause`,
    internal: keyId,
  });
}

/**
 * How many different members are demoted since then with this one; open changes count, quiet repetitions do not. Lifting
 * the pause of a key begins its count anew.
 */
function countDemoted(
  db: Connection,
  demotion: { rankeeId: number; keyId: string; since: number },
): { byKey: number; byAll: number } {
  const others = db.get<{ byKey: number; byAll: number }>(
    `SELECT count(DISTINCT iif(key_id = @keyId, rankee_id, NULL)) AS byKey, count(DISTINCT rankee_id) AS byAll
     FROM rank_changes
     WHERE requested_at >= max(@since, coalesce((SELECT resumed_at FROM keys WHERE id = @keyId), 0)) AND rankee_id <> @rankeeId AND state IN ('pending', 'applied', 'unknown')
       AND demotion = 1 AND dry_run = 0 AND roles_before <> roles_after`,
    demotion,
  );
  return { byKey: (others?.byKey ?? 0) + 1, byAll: (others?.byAll ?? 0) + 1 };
}
