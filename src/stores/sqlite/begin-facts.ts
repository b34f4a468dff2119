import type { BeginFacts, ChangedMember, MemberWindow } from '../../core/begin.ts';
import type { RankChange } from '../../core/model.ts';
import type { BeginQuestion } from '../../ports/index.ts';
import { mayHaveChanged } from '../where.ts';
import { findCaller } from './callers.ts';
import { lastChangedSomebodyAt, standingOf } from './change-queries.ts';
import type { Connection } from './engine/connection.ts';
import { holdsOf } from './holds.ts';

/**
 * The facts for the start of a change. Called in the transaction that stores the change, whose write lock excludes all
 * others.
 */
export function beginFacts(
  db: Connection,
  change: RankChange,
  { secretId, windows, now }: BeginQuestion & { now: number },
): BeginFacts {
  const { keyId, placeId, rankeeId, rankerId } = change;
  return {
    now,
    ...standingOf(db, rankeeId),
    holds: holdsOf(db, change),
    caller: keyId === undefined ? undefined : findCaller(db, { keyId, placeId, secretId, now }),
    rankerChangedAt: rankerId === 0 ? undefined : lastChangedSomebodyAt(db, rankerId),
    changedMembers: windows.map((window) => changedMembers(db, { window, now })),
  };
}

function changedMembers(db: Connection, { window: { of, since }, now }: { window: MemberWindow; now: number }) {
  return db.all<ChangedMember>(
    `SELECT rankee_id AS rankeeId, key_id AS keyId, max(requested_at) AS at
     FROM rank_changes
     WHERE requested_at BETWEEN @since AND @now AND key_id IS NOT NULL AND ${mayHaveChanged}
       AND ${counted(of)} AND dry_run = 0 AND roles_before <> roles_after
     GROUP BY rankee_id, key_id${of === 'demotions' ? orSuspended : ''}`,
    { since, now, ...(typeof of === 'object' && of) },
  );
}

/** Members without a removable role were suspended nevertheless. */
const orSuspended = `
  UNION ALL
  SELECT rankee_id, key_id, max(begins_at) FROM holds
  WHERE kind = 'suspension' AND begins_at BETWEEN @since AND @now AND key_id IS NOT NULL
  GROUP BY rankee_id, key_id`;

function counted(of: MemberWindow['of']): string {
  if (of === 'demotions') return 'demotion = 1';
  return of === 'privileged' ? 'privileged = 1' : 'top_rank >= @fromRank';
}
