import { type AuditRow, type ChainLink, chainStart, linkHash } from '../../core/audit.ts';
import type { DomainEvent } from '../../core/events.ts';
import type { Verdict } from '../../core/verdict.ts';
import type { AuditFilter, AuditStore, Clock } from '../../ports/index.ts';
import type { Connection } from './engine/connection.ts';
import { isDoneBy, whereOf } from './engine/where.ts';

export function auditStore(db: Connection, clock: Pick<Clock, 'now'>): AuditStore {
  return {
    async appendAudit(event) {
      await db.write(() => appendEvent(db, { ...event, at: clock.now() }));
    },

    async listAudit(filter) {
      const order = filter.oldestFirst ? 'ASC' : 'DESC';
      const rows = db.all<AuditRow>(
        `SELECT ${fields} FROM audit_events WHERE ${whereOf(conditions, filter)} ORDER BY id ${order} LIMIT @limit`,
        { ...filter, oldestFirst: null },
      );
      return rows.map(({ hash: _, detail, ...event }) => ({ ...event, detail: JSON.parse(detail) }));
    },

    async auditChain(page) {
      return db.read(() => ({
        anchor: chainAnchor(db),
        rows: chainRows(db, page),
        lastId: chainEnd(db).id,
      }));
    },
  };
}

/** Writes one event; called within the transaction of what it tells of. `detail` never holds a secret or its hash. */
export function appendEvent(db: Connection, { detail, ...event }: DomainEvent): void {
  const last = chainEnd(db);
  const row = { ...event, id: last.id + 1, detail: JSON.stringify(detail) };
  db.run(
    `INSERT INTO audit_events (id, at, done_by, action, subject, detail, hash)
     VALUES (@id, @at, @by, @action, @subject, @detail, @hash)`,
    { ...row, hash: Buffer.from(linkHash(last.hash, row), 'hex') },
  );
}

/** What core allows. Throws its refusal: then the transaction is taken back. */
export function allowed<Change>(verdict: Verdict<Change>): { change: Change; events: DomainEvent[] } {
  if ('refusal' in verdict) throw verdict.refusal;
  return verdict;
}

/** The same for several, in order. */
export function appendEvents(db: Connection, events: readonly DomainEvent[]): void {
  for (const event of events) appendEvent(db, event);
}

/** What the first row follows. */
export function chainAnchor(db: Connection): ChainLink {
  return db.get<ChainLink>('SELECT last_id AS id, lower(hex(hash)) AS hash FROM audit_anchor') ?? chainStart;
}

/** In order, after a row. */
export function chainRows(db: Connection, page: { afterId: number; limit: number }): AuditRow[] {
  return db.all(`SELECT ${fields} FROM audit_events WHERE id > @afterId ORDER BY id LIMIT @limit`, page);
}

/** The newest row ever written, also where it is no longer there; the hash is that of the newest one that is. */
function chainEnd(db: Connection): ChainLink {
  const end = db.get<ChainLink>(
    `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit_events'), 0) AS id,
            coalesce((SELECT lower(hex(hash)) FROM audit_events ORDER BY id DESC LIMIT 1),
                     (SELECT lower(hex(hash)) FROM audit_anchor), @start) AS hash`,
    { start: chainStart.hash },
  );
  return end ?? chainStart;
}

const fields = 'id, at, done_by AS "by", action, subject, detail, lower(hex(hash)) AS hash';

/** What each part of a filter asks of a row. */
const conditions = {
  since: 'at >= @since',
  until: 'at < @until',
  by: isDoneBy,
  action: "(action = @action OR substr(action, 1, length(@action) + 1) = @action || '.')",
  subject: 'subject = @subject',
  keyId: "(subject = @keyId OR done_by = 'key:' || @keyId OR detail ->> '$.keyId' = @keyId)",
  afterId: 'id > @afterId',
  beforeId: 'id < @beforeId',
} as const satisfies Record<Exclude<keyof AuditFilter, 'limit' | 'oldestFirst'>, string>;
