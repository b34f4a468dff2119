import { idempotencyWindowMs, type RankChange } from '../../core/model.ts';
import type { ChangeStore, Clock } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import { beginFacts } from './begin-facts.ts';
import { findChange, findOpen, standingOf } from './change-queries.ts';
import { insertChange, toBindings, updateChange } from './change-row.ts';
import type { Connection } from './engine/connection.ts';
import { holdsOf, keepHolds } from './holds.ts';
import { editKey } from './keys.ts';
import type { Nodes } from './nodes.ts';

type ChangeWrites = Pick<
  ChangeStore,
  'recordChange' | 'beginChange' | 'updateChange' | 'reopenChange' | 'takeOver' | 'release' | 'holds' | 'leaseLeft'
>;

export function changeWrites(db: Connection, clock: Pick<Clock, 'now'>, nodes: Nodes): ChangeWrites {
  const heldByMe = (id: string): RankChange | undefined => {
    const open = findOpen(db, id);
    return open?.node !== undefined && open.node === nodes.idIfBegun ? open.change : undefined;
  };
  const setNode = (id: string, node: string | null) =>
    db.run('UPDATE rank_changes SET node = @node WHERE id = @id', { id, node });

  return {
    async recordChange(change, events) {
      await db.write(() => {
        insert(db, { change, node: null });
        appendEvents(db, events);
      });
    },

    async beginChange(change, question, judge) {
      const node = change.state === 'pending' ? nodes.id : null;
      return db.write(() => {
        const now = clock.now();
        const verdict = judge(beginFacts(db, change, { ...question, now }));
        if (verdict.do === 'begin') {
          insert(db, { change, node });
          keepHolds(db, verdict.holds);
        }
        if (verdict.do === 'refuse' && verdict.pause !== undefined) editKey(db, { ...verdict.pause, now });
        if (verdict.do !== 'stale') appendEvents(db, verdict.events);
        return verdict;
      });
    },

    async updateChange(changeId, judge) {
      return db.write(() => {
        const before = heldByMe(changeId);
        if (before === undefined) return undefined;
        const { change, isHeld, holds, events } = judge({ change: before, holds: holdsOf(db, before) });
        updateChange(db, before, change);
        keepHolds(db, holds);
        if (!isHeld) setNode(changeId, null);
        appendEvents(db, events);
        return change;
      });
    },

    async reopenChange(changeId, judge) {
      return db.write(() => {
        const before = findChange(db, changeId);
        if (before === undefined) return undefined;
        const { latestId, openId } = standingOf(db, before.rankeeId);
        if (latestId !== changeId || openId !== undefined) return undefined;
        const { change, holds, events } = judge({ change: before, holds: holdsOf(db, before) });
        updateChange(db, before, change);
        keepHolds(db, holds);
        appendEvents(db, events);
        return change;
      });
    },

    async takeOver(changeId) {
      const mine = nodes.id;
      return db.write(() => {
        const open = findOpen(db, changeId);
        if (open === undefined) return undefined;
        if (open.node !== undefined && open.node !== mine && !nodes.isGone(open.node)) return undefined;
        setNode(changeId, mine);
        return open.change;
      });
    },

    async release(changeId) {
      await db.write(() => {
        if (heldByMe(changeId) !== undefined) setNode(changeId, null);
      });
    },

    leaseLeft: () => () => Number.POSITIVE_INFINITY,

    async holds(changeId) {
      const held = 'SELECT 1 FROM rank_changes WHERE id = @id AND node = @node';
      return nodes.idIfBegun !== undefined && db.get(held, { id: changeId, node: nodes.idIfBegun }) !== undefined;
    },
  };
}

function insert(db: Connection, { change, node }: { change: RankChange; node: string | null }): void {
  if (change.keyId !== undefined && change.idempotencyKey !== undefined) freeIdempotencyKey(db, change);
  db.run(insertChange, { ...toBindings(change), node });
}

/** Takes the idempotency key from a change that has outlived its window. If it still counts, the insert throws `conflict`. */
function freeIdempotencyKey(db: Connection, { keyId, idempotencyKey, group, requestedAt }: RankChange): void {
  db.run(
    `UPDATE rank_changes SET idempotency_key = NULL
     WHERE key_id = @keyId AND idempotency_key = @idempotencyKey AND group_title = @group
       AND requested_at < @windowStart`,
    { keyId, idempotencyKey, group, windowStart: requestedAt - idempotencyWindowMs },
  );
}
