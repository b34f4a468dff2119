import { idempotencyWindowMs, type RankChange } from '../../core/model.ts';
import type { ChangeStore, Clock, JudgeChange } from '../../ports/index.ts';
import { isOpenChange } from '../where.ts';
import { appendEvents } from './audit.ts';
import { beginFacts } from './begin-facts.ts';
import { findChange, isHeld, standingOf } from './change-queries.ts';
import {
  type ChangeRow,
  changeFields,
  insertChange,
  selectChange,
  toBindings,
  toChange,
  updateChange,
} from './change-row.ts';
import type { Database, Transaction, WriteTransaction } from './engine/database.ts';
import { holdsOf, holdsOfChange, keepHolds } from './holds.ts';
import { editKey } from './keys.ts';
import type { Nodes } from './nodes.ts';

type ChangeWrites = Pick<
  ChangeStore,
  'recordChange' | 'beginChange' | 'updateChange' | 'reopenChange' | 'takeOver' | 'release' | 'holds' | 'leaseLeft'
>;

export function changeWrites(db: Database, clock: Pick<Clock, 'now'>, nodes: Nodes): ChangeWrites {
  return {
    async recordChange(change, events) {
      await db.write(async (transaction) => {
        insert(transaction, { change, node: null });
        await appendEvents(transaction, events);
      });
    },

    async beginChange(change, question, judge) {
      const node = change.state === 'pending' ? await nodes.id() : null;
      return db.write(async (transaction) => {
        const now = clock.now();
        const verdict = judge(await beginFacts(transaction, change, { ...question, now }));
        if (verdict.do === 'begin') {
          insert(transaction, { change, node });
          keepHolds(transaction, verdict.holds);
        }
        if (verdict.do === 'refuse' && verdict.pause !== undefined) editKey(transaction, { ...verdict.pause, now });
        if (verdict.do !== 'stale') await appendEvents(transaction, verdict.events);
        return verdict;
      });
    },

    async updateChange(changeId, judge) {
      const node = nodes.idIfBegun;
      if (node === undefined) return undefined;
      return db.write(async (transaction) => {
        const held = `${selectChange} WHERE id = @changeId AND node = @node AND ${isOpenChange} FOR UPDATE`;
        const [row, holdsOf] = await Promise.all([
          transaction.get<ChangeRow>(held, { changeId, node }),
          holdsOfChange(transaction, changeId),
        ]);
        if (row === undefined) return undefined;
        const change = toChange(row);
        return keepVerdict(transaction, { change, holds: holdsOf(change) }, judge);
      });
    },

    async reopenChange(changeId, judge) {
      return db.write(async (transaction) => {
        const before = await findChange(transaction, changeId);
        if (before === undefined) return undefined;
        const { latestId, openId } = await standingOf(transaction, before.rankeeId);
        if (latestId !== changeId || openId !== undefined) return undefined;
        return keepVerdict(transaction, { change: before, holds: await holdsOf(transaction, before) }, judge);
      });
    },

    async takeOver(changeId) {
      const mine = await nodes.id();
      return db.write(async (transaction) => {
        const row = await transaction.get<ChangeRow>(takeOver, { changeId, mine });
        return row && toChange(row);
      });
    },

    async release(changeId) {
      const release = `UPDATE rankd.rank_changes SET node = NULL
                       WHERE id = @changeId AND node = @node AND ${isOpenChange}`;
      if (nodes.idIfBegun !== undefined) await db.work(release, { changeId, node: nodes.idIfBegun });
    },

    leaseLeft: () => nodes.leaseLeft(),

    async holds(changeId) {
      const held = 'SELECT 1 AS held FROM rankd.rank_changes WHERE id = @changeId AND node = @node';
      if (nodes.idIfBegun === undefined || !nodes.hasLease) return false;
      return (await db.get(held, { changeId, node: nodes.idIfBegun })) !== undefined;
    },
  };
}

const takeOver = `
  UPDATE rankd.rank_changes SET node = @mine, takeovers = takeovers + (node IS DISTINCT FROM @mine)::int
  WHERE id = @changeId AND ${isOpenChange} AND (node IS NULL OR node = @mine OR NOT ${isHeld})
  RETURNING ${changeFields}`;

async function keepVerdict(
  transaction: WriteTransaction,
  kept: Parameters<JudgeChange>[0],
  judge: JudgeChange,
): Promise<RankChange> {
  const { change, isHeld, holds, events } = judge(kept);
  updateChange(transaction, kept.change, { after: change, isHeld });
  keepHolds(transaction, holds);
  await appendEvents(transaction, events);
  return change;
}

function insert(transaction: Transaction, { change, node }: { change: RankChange; node: string | null }): void {
  if (change.keyId !== undefined && change.idempotencyKey !== undefined) freeIdempotencyKey(transaction, change);
  transaction.run(insertChange, { ...toBindings(change), node });
}

/** Takes the idempotency key from a change that has outlived its window. If it still counts, the insert throws `conflict`. */
function freeIdempotencyKey(transaction: Transaction, { keyId, idempotencyKey, group, requestedAt }: RankChange): void {
  transaction.run(
    `UPDATE rankd.rank_changes SET idempotency_key = NULL
     WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group
       AND requested_at < @windowStart`,
    { keyId, idempotencyKey, group, windowStart: requestedAt - idempotencyWindowMs },
  );
}
