import { forgetAction, lastToGo } from '../../core/audit.ts';
import { openStates } from '../../core/holds.ts';
import type { RetentionStore } from '../../ports/index.ts';
import { inStates, isOpenChange } from '../where.ts';
import { chainAnchor, chainRows } from './audit.ts';
import type { Database } from './engine/database.ts';

export function retentionStore(db: Database): RetentionStore {
  return {
    async pruneChanges({ cursor = '0', before, limit }) {
      const step = { before, limit, after: Number(cursor) };
      return db.write(async (transaction) => {
        const rows = await transaction.all<{ seq: number; isOpen: boolean; isOld: boolean }>(oldestChanges, step);
        const seqs = rows.filter(({ isOpen, isOld }) => isOld && !isOpen).map(({ seq }) => seq);
        transaction.run('DELETE FROM rankd.rank_changes WHERE seq = ANY(@seqs)', { seqs });
        transaction.run(
          `DELETE FROM rankd.holds WHERE ended_at < @before AND NOT ${inStates(openStates)}
             AND NOT EXISTS (SELECT 1 FROM rankd.rank_changes WHERE rank_changes.id = change_id)`,
          step,
        );
        const last = rows.at(-1);
        const isMore = last !== undefined && rows.length === limit && rows.some(({ isOld }) => isOld);
        return { removed: seqs.length, ...(isMore && { next: String(last.seq) }) };
      });
    },

    async pruneAudit({ upToId, limit }) {
      return db.write(async (transaction) => {
        const anchor = await chainAnchor(transaction);
        const rows = await chainRows(transaction, { afterId: anchor.id, limit });
        const last = lastToGo(anchor, rows, ({ id }) => id <= upToId);
        if (last === anchor) return 0;
        transaction.run(`UPDATE rankd.audit_anchor SET last_id = @id, hash = decode(@hash, 'hex')`, { ...last });
        transaction.run('DELETE FROM rankd.audit_events WHERE id <= @id', { id: last.id });
        transaction.run('DELETE FROM rankd.audit_people WHERE event_id <= @id AND salt IS NOT NULL', { id: last.id });
        for (const { id, action, subject } of rows) {
          if (id > last.id || action !== forgetAction) continue;
          transaction.run('DELETE FROM rankd.audit_people WHERE user_id = @pseudonym', { pseudonym: Number(subject) });
        }
        return last.id - anchor.id;
      });
    },
  };
}

const oldestChanges = `
  SELECT seq, ${isOpenChange} AS "isOpen",
         greatest(requested_at, coalesce(finished_at, requested_at)) < @before AS "isOld"
  FROM rankd.rank_changes WHERE seq > @after ORDER BY seq LIMIT @limit`;
