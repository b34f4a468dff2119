import type { AuditEvent } from '../../core/model.ts';
import type { AuditStore, Clock } from '../../ports.ts';
import type { Connection } from './connection.ts';

export function auditStore(db: Connection, clock: Pick<Clock, 'now'>): AuditStore {
  return {
    async appendAudit(event) {
      await db.write(() => appendEvent(db, { ...event, at: clock.now() }));
    },

    async listAudit({ since, afterId, limit }) {
      const conditions = [
        ...(since === undefined ? [] : ['at >= @since']),
        ...(afterId === undefined ? [] : ['id > @afterId']),
      ];
      const rows = db.all<AuditRow>(
        `SELECT id, at, done_by AS "by", action, subject, detail FROM audit_events
         WHERE ${conditions.join(' AND ') || 'TRUE'} ORDER BY id DESC LIMIT @limit`,
        { since, afterId, limit },
      );
      return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail) }));
    },
  };
}

/** Writes one event; called within the transaction of what it tells of. `detail` never holds a secret or its hash. */
export function appendEvent(db: Connection, { detail, ...event }: Omit<AuditEvent, 'id'>): void {
  db.run(
    `INSERT INTO audit_events (at, done_by, action, subject, detail)
     VALUES (@at, @by, @action, @subject, @detail)`,
    { ...event, detail: JSON.stringify(detail) },
  );
}

type AuditRow = Omit<AuditEvent, 'detail'> & { detail: string };
