import type { BeginFacts, ChangedMember, MemberWindow } from '../../core/begin.ts';
import { idempotencyWindowMs, type RankChange } from '../../core/model.ts';
import type { BeginQuestion, ChangeStore, Clock, JudgeChange } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import { findCaller } from './callers.ts';
import { findChange, isHeld, lastRankedOthersAt, latestAndOpenOf } from './change-queries.ts';
import { type ChangeRow, changeFields, insertChange, selectChange, toChange, updateChange } from './change-row.ts';
import type { Database, OwnNode, Reader, Transaction, WriteTransaction } from './database.ts';
import { holdsOf, holdsOfChange, upsertHolds } from './holds.ts';
import { editKey } from './keys.ts';
import { isOpenChange, mayHaveChanged, perEngine } from './rows.ts';

type ChangeWrites = Pick<
  ChangeStore,
  'recordChange' | 'beginChange' | 'updateChange' | 'reopenChange' | 'takeOver' | 'release' | 'holds' | 'leaseLeft'
>;

export function changeWrites(db: Database, clock: Pick<Clock, 'now'>, own: OwnNode): ChangeWrites {
  const { schema, forUpdate } = db.sql;
  const heldByMe = `id = @changeId AND node = @node AND ${isOpenChange}`;
  const selectHeld = `${selectChange(db.sql)} WHERE ${heldByMe} ${forUpdate}`;
  const selectIsHeld = `SELECT 1 AS held FROM ${schema}.rank_changes WHERE id = @changeId AND node = @node`;
  return {
    async recordChange(change, events) {
      await db.write(async (transaction) => {
        insert(transaction, { change, node: null });
        await appendEvents(transaction, events);
      });
    },

    async beginChange(change, question, judge) {
      const node = change.state === 'pending' ? await own.id() : null;
      return db.write(async (transaction) => {
        const now = clock.now();
        const verdict = judge(await beginFacts(transaction, change, { ...question, now }));
        if (verdict.do === 'begin') {
          insert(transaction, { change, node });
          upsertHolds(transaction, verdict.holds);
        }
        if (verdict.do === 'refuse' && verdict.pause !== undefined) editKey(transaction, { ...verdict.pause, now });
        if (verdict.do !== 'stale') await appendEvents(transaction, verdict.events);
        return verdict;
      });
    },

    async updateChange(changeId, judge) {
      const node = own.idIfBegun;
      if (node === undefined) return undefined;
      return db.write(async (transaction) => {
        const [row, holdsOf] = await Promise.all([
          transaction.get<ChangeRow>(selectHeld, { changeId, node }),
          holdsOfChange(transaction, changeId),
        ]);
        if (row === undefined) return undefined;
        const change = toChange(row);
        return applyVerdict(transaction, { change, holds: holdsOf(change) }, judge);
      });
    },

    async reopenChange(changeId, judge) {
      return db.write(async (transaction) => {
        const before = await findChange(transaction, changeId);
        if (before === undefined) return undefined;
        const { latestId, openId } = await latestAndOpenOf(transaction, before.rankeeId);
        if (latestId !== changeId || openId !== undefined) return undefined;
        return applyVerdict(transaction, { change: before, holds: await holdsOf(transaction, before) }, judge);
      });
    },

    async takeOver(changeId) {
      const mine = await own.id();
      return db.write(async (transaction) => {
        const row = await transaction.get<ChangeRow>(
          `UPDATE ${schema}.rank_changes SET node = @mine, takeovers = takeovers + CASE WHEN node = @mine THEN 0 ELSE 1 END
           WHERE id = @changeId AND ${isOpenChange} AND (node IS NULL OR node = @mine OR NOT ${isHeld(db.sql)})
           RETURNING ${changeFields}`,
          { changeId, mine },
        );
        return row && toChange(row);
      });
    },

    async release(changeId) {
      const node = own.idIfBegun;
      if (node === undefined) return;
      await db.work(`UPDATE ${schema}.rank_changes SET node = NULL WHERE ${heldByMe}`, { changeId, node });
    },

    leaseLeft: () => own.leaseLeft(),

    async holds(changeId) {
      const node = own.idIfBegun;
      if (node === undefined || !own.hasLease) return false;
      return (await db.get(selectIsHeld, { changeId, node })) !== undefined;
    },
  };
}

async function applyVerdict(
  transaction: WriteTransaction,
  stored: Parameters<JudgeChange>[0],
  judge: JudgeChange,
): Promise<RankChange> {
  const { change, isHeld, holds, events } = judge(stored);
  updateChange(transaction, stored.change, { after: change, isHeld });
  upsertHolds(transaction, holds);
  await appendEvents(transaction, events);
  return change;
}

function insert(transaction: Transaction, { change, node }: { change: RankChange; node: string | null }): void {
  if (change.keyId !== undefined && change.idempotencyKey !== undefined) freeIdempotencyKey(transaction, change);
  insertChange(transaction, change, node);
}

/**
 * Frees an idempotency key if the change that used it was requested before the current window. If it was requested
 * since then, inserting the new change throws `conflict`.
 */
function freeIdempotencyKey(transaction: Transaction, { keyId, idempotencyKey, group, requestedAt }: RankChange): void {
  transaction.run(
    `UPDATE ${transaction.sql.schema}.rank_changes SET idempotency_key = NULL
     WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group
       AND requested_at < @windowStart`,
    { keyId, idempotencyKey, group, windowStart: requestedAt - idempotencyWindowMs },
  );
}

/**
 * Reads the facts for the judge in the transaction that stores the verdict, so that no other write can change them in
 * between.
 */
async function beginFacts(
  db: Reader,
  change: RankChange,
  { secretId, windows, now }: BeginQuestion & { now: number },
): Promise<BeginFacts> {
  const { keyId, placeId, rankeeId, rankerId } = change;
  const [latestAndOpen, holds, caller, rankerChangedAt, changed] = await Promise.all([
    latestAndOpenOf(db, rankeeId),
    holdsOf(db, change),
    keyId === undefined ? undefined : findCaller(db, { keyId, placeId, secretId, now }),
    rankerId === 0 ? undefined : lastRankedOthersAt(db, rankerId),
    Promise.all(windows.map((window) => changedMembers(db, { window, now }))),
  ]);
  return { now, ...latestAndOpen, holds, caller, rankerChangedAt, changedMembers: changed };
}

function changedMembers(db: Reader, { window: { of, since }, now }: { window: MemberWindow; now: number }) {
  const [kind, values] = typeof of === 'object' ? (['ranked', of] as const) : [of, {}];
  return db.all<ChangedMember>(selectChanged[kind](db.sql), { since, now, ...values });
}

const selectChanged = {
  // A suspension counts as a demotion even if it changes no roles, which happens if the member has only the base role.
  demotions: perEngine(
    ({ schema }) => `${changedWhere(schema, 'demotion')}
    UNION ALL
    SELECT rankee_id, key_id, max(begins_at) FROM ${schema}.holds
    WHERE kind = 'suspension' AND begins_at BETWEEN @since AND @now AND key_id IS NOT NULL
    GROUP BY rankee_id, key_id`,
  ),
  privileged: perEngine(({ schema }) => changedWhere(schema, 'privileged')),
  ranked: perEngine(({ schema }) => changedWhere(schema, 'top_rank >= @fromRank')),
};

function changedWhere(schema: string, isCounted: string): string {
  return `
    SELECT rankee_id AS "rankeeId", key_id AS "keyId", max(requested_at) AS at
    FROM ${schema}.rank_changes
    WHERE requested_at BETWEEN @since AND @now AND key_id IS NOT NULL AND ${mayHaveChanged}
      AND ${isCounted} AND NOT dry_run AND roles_before <> roles_after
    GROUP BY rankee_id, key_id`;
}
