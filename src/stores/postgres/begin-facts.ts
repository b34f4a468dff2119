import type { BeginFacts, ChangedMember, MemberWindow } from '../../core/begin.ts';
import type { RankChange } from '../../core/model.ts';
import type { BeginQuestion } from '../../ports/index.ts';
import { mayHaveChanged } from '../where.ts';
import { findCaller } from './callers.ts';
import { lastChangedSomebodyAt, standingOf } from './change-queries.ts';
import type { Reader } from './engine/database.ts';
import { holdsOf } from './holds.ts';

/**
 * The facts for the start of a change, read in one trip. Called in the transaction that stores the change, whose lock
 * excludes all others.
 */
export async function beginFacts(
  db: Reader,
  change: RankChange,
  { secretId, windows, now }: BeginQuestion & { now: number },
): Promise<BeginFacts> {
  const { keyId, placeId, rankeeId, rankerId } = change;
  const [standing, holds, caller, rankerChangedAt, changed] = await Promise.all([
    standingOf(db, rankeeId),
    holdsOf(db, change),
    keyId === undefined ? undefined : findCaller(db, { keyId, placeId, secretId, now }),
    rankerId === 0 ? undefined : lastChangedSomebodyAt(db, rankerId),
    Promise.all(windows.map((window) => changedMembers(db, { window, now }))),
  ]);
  return { now, ...standing, holds, caller, rankerChangedAt, changedMembers: changed };
}

function changedMembers(db: Reader, { window: { of, since }, now }: { window: MemberWindow; now: number }) {
  return db.all<ChangedMember>(
    `SELECT rankee_id AS "rankeeId", key_id AS "keyId", max(requested_at) AS at
     FROM rankd.rank_changes
     WHERE requested_at BETWEEN @since AND @now AND key_id IS NOT NULL AND ${mayHaveChanged}
       AND ${counted(of)} AND NOT dry_run AND roles_before <> roles_after
     GROUP BY rankee_id, key_id${of === 'demotions' ? orSuspended : ''}`,
    { since, now, ...(typeof of === 'object' && of) },
  );
}

/** Members without a removable role were suspended nevertheless. */
const orSuspended = `
  UNION ALL
  SELECT rankee_id, key_id, max(begins_at) FROM rankd.holds
  WHERE kind = 'suspension' AND begins_at BETWEEN @since AND @now AND key_id IS NOT NULL
  GROUP BY rankee_id, key_id`;

function counted(of: MemberWindow['of']): string {
  if (of === 'demotions') return 'demotion';
  return of === 'privileged' ? 'privileged' : 'top_rank >= @fromRank';
}
