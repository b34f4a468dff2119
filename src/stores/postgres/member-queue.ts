import type { MemberQueueStore } from '../../ports/index.ts';
import { type Database, noticeChannel } from './engine/database.ts';
import { hasEnded } from './node-statements.ts';
import type { Nodes } from './nodes.ts';

export function memberQueueStore(db: Database, nodes: Nodes): MemberQueueStore {
  return {
    async enqueue(rankeeId) {
      const [row] = await db.work<{ position: string }>(enqueue, { rankeeId, node: await nodes.id() });
      return row?.position ?? '';
    },

    async leave(position) {
      await db.work(leave, { position: Number(position) });
    },

    watchQueue: (rankeeId, onMove) => db.hear(String(rankeeId), onMove),

    async queueStanding({ rankeeId, position }) {
      const [row] = await db.work<{ next: string; isNext: boolean }>(standing, {
        ...{ rankeeId, mine: nodes.idIfBegun ?? '' },
        before: position === undefined ? Number.MAX_SAFE_INTEGER : Number(position),
      });
      return { position: position ?? row?.next ?? '1', isNext: row?.isNext ?? true };
    },
  };
}

/** The number is taken under a lock of the member's, so a lower one can't be committed later. */
const enqueue = `
  INSERT INTO rankd.member_queue (rankee_id, node)
  SELECT @rankeeId, @node FROM (SELECT pg_advisory_xact_lock(@rankeeId::bigint) OFFSET 0) AS locked
  RETURNING seq::text AS position`;

const leave = `
  WITH gone AS (DELETE FROM rankd.member_queue WHERE seq = @position RETURNING rankee_id)
  SELECT pg_notify('${noticeChannel}', rankee_id::text) FROM gone`;

/** Within a statement on `rank_changes`, for a change that has ended: whoever waits looks again. Nobody pays for it where nobody waits. */
export const wakeQueue = `
  SELECT pg_notify('${noticeChannel}', waiting.rankee_id::text) FROM rankd.member_queue AS waiting
  WHERE waiting.rankee_id = rank_changes.rankee_id LIMIT 1`;

const standing = `
  SELECT (coalesce(max(seq), 0) + 1)::text AS next,
         NOT coalesce(bool_or(node <> @mine AND NOT ${hasEnded('node')}), false) AS "isNext"
  FROM rankd.member_queue WHERE rankee_id = @rankeeId AND seq < @before`;
