import { RankdError } from '../../base/errors.ts';
import { idempotencyWindowMs, type RankChange } from '../../core/model.ts';
import { refusalOfRankersPace } from '../../core/rules/cooldowns.ts';
import type { ChangeOutcome, ChangeStore, Clock } from '../../ports/index.ts';
import { refusalOfAccess } from './access.ts';
import { appendEvent } from './audit.ts';
import { tripBreaker } from './breaker.ts';
import { findOpen, lastChangedSomebodyAt, standingOf } from './change-queries.ts';
import { insertChange, toBindings, updateChange } from './change-row.ts';
import type { Connection } from './engine/connection.ts';

type ChangeWrites = Pick<ChangeStore, 'recordChange' | 'beginChange' | 'markRollBack' | 'finishChange'>;

export function changeWrites(db: Connection, clock: Pick<Clock, 'now'>): ChangeWrites {
  return {
    async recordChange(change) {
      await db.write(() => {
        insert(db, change, clock.now());
        audit(db, change, `rank.${change.state}`, clock.now());
      });
    },

    async beginChange(change, { after, limits = [], rankerCooldownMs = 0 }) {
      const now = clock.now();
      const result = await db.write(() => {
        if (!isFresh(db, change.rankeeId, after)) return false;
        const refusal =
          refusalOfAccess(db, change, now) ??
          refusalOfPace(db, change, { cooldownMs: rankerCooldownMs, now }) ??
          tripBreaker(db, change, { limits, now });
        if (refusal !== undefined) return refusal;
        insert(db, change, now);
        audit(db, change, 'rank.begin', now);
        return true;
      });
      if (result instanceof RankdError) throw result; // only now: thrown inside, it would take the pause back
      return result;
    },

    async markRollBack(changeId, why) {
      await db.write(() => {
        const change = findOpen(db, changeId);
        if (change === undefined) throw new RankdError('conflict', `Change ${changeId} is settled already.`);
        const turned: RankChange = { ...change, aim: 'roll_back', ...why };
        updateChange(db, change, turned);
        audit(db, turned, 'rank.roll_back', clock.now());
      });
    },

    async finishChange(changeId, outcome) {
      return db.write(() => {
        const change = findOpen(db, changeId);
        if (change === undefined) return false;
        if (change.state === 'unknown' && outcome.state === 'unknown') return true;
        const finished = applyOutcome(change, outcome, clock.now());
        updateChange(db, change, finished);
        audit(db, { ...finished, code: outcome.code }, `rank.${finished.state}`, clock.now());
        return true;
      });
    },
  };
}

/** Of changes by one ranker that were decided side by side, only the first begins. */
function refusalOfPace(
  db: Connection,
  { rankerId }: RankChange,
  { cooldownMs, now }: { cooldownMs: number; now: number },
): RankdError | undefined {
  const at = cooldownMs === 0 || rankerId === 0 ? undefined : lastChangedSomebodyAt(db, rankerId);
  return refusalOfRankersPace({ rankerId, cooldownMs, sinceLastChangeMs: at === undefined ? undefined : now - at });
}

function insert(db: Connection, change: RankChange, now: number): void {
  if (change.keyId !== undefined && change.idempotencyKey !== undefined) freeIdempotencyKey(db, change, now);
  db.run(insertChange, toBindings(change));
}

/** Takes the idempotency key from a change that has outlived its window. Where it still counts, the insert throws `conflict`. */
function freeIdempotencyKey(db: Connection, { keyId, idempotencyKey, group }: RankChange, now: number): void {
  db.run(
    `UPDATE rank_changes SET idempotency_key = NULL
     WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group
       AND requested_at < @windowStart`,
    { keyId, idempotencyKey, group, windowStart: now - idempotencyWindowMs },
  );
}

/** True where nothing about this member has changed since the change `after`, and nothing is under way. */
function isFresh(db: Connection, rankeeId: number, after: string | undefined): boolean {
  const { latestId, openId } = standingOf(db, rankeeId);
  return openId === undefined && latestId === after;
}

/**
 * A change that becomes unknown keeps what its settlement needs: the roles that were wanted and, where it is being put
 * back, the reason for that.
 */
function applyOutcome(change: RankChange, outcome: ChangeOutcome, now: number): RankChange {
  const { state, code, message, rolesAfter = change.rolesAfter } = outcome;
  const { idempotencyKey, ...kept } = change;
  return {
    ...kept,
    ...(idempotencyKey !== undefined && !outcome.forgetIdempotencyKey && { idempotencyKey }),
    state,
    ...((state !== 'unknown' || change.aim === 'apply') && { code, message }),
    ...(state !== 'unknown' && { rolesAfter, finishedAt: now }),
  };
}

function audit(db: Connection, change: RankChange, action: string, at: number): void {
  const { id, by, rankeeId, code, rolesBefore, rolesAfter, keyId, placeId, undoId, dryRun } = change;
  const detail = { rankeeId, code, rolesBefore, rolesAfter, keyId, placeId, undoId, ...(dryRun && { dryRun }) };
  appendEvent(db, { at, by, action, subject: id, detail });
}
