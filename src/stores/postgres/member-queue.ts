import type { MemberQueueStore } from '../../ports/index.ts';
import type { Database } from './engine/database.ts';
import { hasEnded } from './engine/statements.ts';
import type { Nodes } from './nodes.ts';

/**
 * Stores every member's queue. After a heartbeat, removes this node's positions that no request holds, such as those
 * left behind by a failed release or a lost response.
 */
export function memberQueueStore(db: Database, nodes: Nodes): MemberQueueStore {
  const held = new Set<string>();
  /** The number of this process's changes that are joining each member's queue, keyed by user id. */
  const joining = new Map<number, number>();
  const count = (rankeeId: number, by: number) => {
    const left = (joining.get(rankeeId) ?? 0) + by;
    if (left > 0) joining.set(rankeeId, left);
    else joining.delete(rankeeId);
  };
  const remove = (position: string) => db.work(leave, { position: Number(position) });

  nodes.releaseOrphansWith(async (node) => {
    for (const { position, rankeeId } of await db.work<{ position: string; rankeeId: number }>(ofNode, { node }))
      if (!held.has(position) && !joining.has(rankeeId)) await remove(position);
  });

  return {
    async enqueue(rankeeId) {
      const node = await nodes.id();
      count(rankeeId, 1);
      try {
        const [row] = await db.work<{ position: string }>(enqueue, { rankeeId, node });
        const position = row?.position ?? '';
        held.add(position);
        return position;
      } finally {
        count(rankeeId, -1);
      }
    },

    async leave(position) {
      held.delete(position);
      await remove(position);
    },

    async queueState({ rankeeId, position }) {
      const row = await db.get<{ next: string; isNext: boolean }>(selectQueueState, {
        ...{ rankeeId, mine: nodes.idIfBegun ?? '' },
        before: position === undefined ? Number.MAX_SAFE_INTEGER : Number(position),
      });
      return { position: position ?? row?.next ?? '1', isNext: row?.isNext ?? true };
    },
  };
}

/** Allocates the number while holding a lock on the member, so that no lower number can be committed later. */
const enqueue = `
  INSERT INTO rankd.member_queue (rankee_id, node)
  SELECT @rankeeId, @node FROM (SELECT pg_advisory_xact_lock(@rankeeId::bigint) OFFSET 0) AS locked
  RETURNING seq::text AS position`;

const ofNode = `
  SELECT seq::text AS position, rankee_id AS "rankeeId" FROM rankd.member_queue WHERE node = @node`;

const leave = 'DELETE FROM rankd.member_queue WHERE seq = @position';

const selectQueueState = `
  SELECT (coalesce(max(seq), 0) + 1)::text AS next,
         NOT coalesce(bool_or(node <> @mine AND NOT ${hasEnded('node')}), false) AS "isNext"
  FROM rankd.member_queue WHERE rankee_id = @rankeeId AND seq < @before`;
