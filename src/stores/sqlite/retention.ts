import { forgetAction, lastToGo } from '../../core/audit.ts';
import { openStates } from '../../core/holds.ts';
import type { RetentionStore } from '../../ports/index.ts';
import { inStates, isOpenChange } from '../where.ts';
import { chainAnchor, chainRows } from './audit.ts';
import type { Connection } from './engine/connection.ts';

export function retentionStore(db: Connection): RetentionStore {
  return {
    async pruneChanges({ cursor = '0', ...rest }) {
      const step = { ...rest, after: Number(cursor) };
      return db.write(() => {
        const rows = db.all<{ seq: number; isOpen: number; isOld: number }>(oldestChanges, step);
        const lastSeq = rows.at(-1)?.seq;
        const removed = db.run(
          `DELETE FROM rank_changes WHERE seq IN (SELECT seq FROM (${oldestChanges}) WHERE isOld AND NOT isOpen)`,
          step,
        );
        db.run(
          `DELETE FROM holds WHERE ended_at < @before AND NOT ${inStates(openStates)}
             AND NOT EXISTS (SELECT 1 FROM rank_changes WHERE rank_changes.id = change_id)`,
          step,
        );
        const isMore = rows.length === step.limit && rows.some(({ isOld }) => isOld);
        return { removed, ...(isMore && lastSeq !== undefined && { next: String(lastSeq) }) };
      });
    },

    async pruneAudit({ upToId, limit }) {
      return db.write(() => {
        const anchor = chainAnchor(db);
        const rows = chainRows(db, { afterId: anchor.id, limit });
        const last = lastToGo(anchor, rows, ({ id }) => id <= upToId);
        if (last === anchor) return 0;
        db.run('UPDATE audit_anchor SET last_id = @id, hash = @hash', { ...last, hash: Buffer.from(last.hash, 'hex') });
        db.run('DELETE FROM audit_events WHERE id <= @id', { id: last.id });
        db.run('DELETE FROM audit_people WHERE event_id <= @id AND salt IS NOT NULL', { id: last.id });
        for (const { id, action, subject } of rows) {
          if (id > last.id || action !== forgetAction) continue;
          db.run('DELETE FROM audit_people WHERE user_id = @pseudonym', { pseudonym: Number(subject) });
        }
        return last.id - anchor.id;
      });
    },
  };
}

const oldestChanges = `
  SELECT seq, ${isOpenChange} AS isOpen,
         max(requested_at, coalesce(finished_at, requested_at)) < @before AS isOld
  FROM rank_changes WHERE seq > @after ORDER BY seq LIMIT @limit`;
