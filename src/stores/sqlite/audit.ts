import { type AuditRow, type ChainLink, chainStart, type EmptiedMention } from '../../core/audit.ts';
import { eventOf, rowAfter } from '../../core/audit-row.ts';
import type { DomainEvent } from '../../core/events.ts';
import type { AuditEvent } from '../../core/model.ts';
import type { AuditFilter, AuditStore, Clock } from '../../ports/index.ts';
import { isDoneBy, whereOf } from '../where.ts';
import type { Connection } from './engine/connection.ts';
import type { Bindings } from './engine/statements.ts';

export function auditStore(db: Connection, clock: Pick<Clock, 'now'>): AuditStore {
  return {
    async appendAudit(event) {
      await db.write(() => appendEvent(db, { ...event, at: clock.now() }));
    },

    async listAudit(filter) {
      const order = filter.oldestFirst ? 'ASC' : 'DESC';
      const query = { ...filter, oldestFirst: null };
      return auditRows(db, `${whereOf(conditions, filter)} ORDER BY id ${order} LIMIT @limit`, query);
    },

    async lastBackupAt() {
      return db.get<{ at: number }>(`${backups} ORDER BY id DESC LIMIT 1`)?.at;
    },

    async auditChain(page) {
      return db.read(() => ({
        anchor: chainAnchor(db),
        rows: chainRows(db, page),
        lastId: chainEnd(db).id,
      }));
    },

    async emptiedMentions() {
      return db.read(() => ({
        anchorId: chainAnchor(db).id,
        lastId: chainEnd(db).id,
        mentions: db.all<EmptiedMention>(emptied, {}),
      }));
    },
  };
}

/** The events that an SQL condition selects, with the people whom they name. */
export function auditRows(db: Connection, condition: string, bindings: Bindings): AuditEvent[] {
  const rows = db.all<StoredRow>(`SELECT ${fields} FROM audit_events WHERE ${condition}`, bindings);
  return rows.map(toRow).map(eventOf);
}

/** Writes one event; called within the transaction of what it tells of. `detail` never holds a secret. */
export function appendEvent(db: Connection, event: DomainEvent): void {
  const { people, hash, ...row } = rowAfter(chainEnd(db), event);
  db.run(
    `INSERT INTO audit_events (id, at, done_by, action, subject, detail, hash)
     VALUES (@id, @at, @by, @action, @subject, @detail, unhex(@hash))`,
    { ...row, hash },
  );
  for (const person of people) {
    db.run('INSERT INTO audit_people (event_id, field, user_id, salt) VALUES (@eventId, @field, @userId, @salt)', {
      eventId: row.id,
      ...person,
    });
  }
}

/** The same for several, in order. */
export function appendEvents(db: Connection, events: readonly DomainEvent[]): void {
  for (const event of events) appendEvent(db, event);
}

/** The link before the first row. */
export function chainAnchor(db: Connection): ChainLink {
  return db.get<ChainLink>('SELECT last_id AS id, lower(hex(hash)) AS hash FROM audit_anchor') ?? chainStart;
}

/** In order, after a row. */
export function chainRows(db: Connection, page: { afterId: number; limit: number }): AuditRow[] {
  const query = `SELECT ${fields} FROM audit_events WHERE id > @afterId ORDER BY id LIMIT @limit`;
  return db.all<StoredRow>(query, page).map(toRow);
}

/** The newest row ever written, also where it is no longer there; the hash is that of the newest one that is. */
export function chainEnd(db: Connection): ChainLink {
  const end = db.get<ChainLink>(
    `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit_events'), 0) AS id,
            coalesce((SELECT lower(hex(hash)) FROM audit_events ORDER BY id DESC LIMIT 1),
                     (SELECT lower(hex(hash)) FROM audit_anchor), @start) AS hash`,
    { start: chainStart.hash },
  );
  return end ?? chainStart;
}

const fields = `
  id, at, done_by AS "by", action, subject, detail, lower(hex(hash)) AS hash,
  (SELECT json_group_array(json_object('field', field, 'userId', user_id, 'salt', salt))
   FROM audit_people WHERE event_id = id) AS people`;

/** A row as it is selected: `people` is JSON. */
type StoredRow = Omit<AuditRow, 'people'> & { people: string };

function toRow({ people, ...row }: StoredRow): AuditRow {
  return { ...row, people: JSON.parse(people) };
}

/** The literal is the one of the index `backups`. */
const backups = "SELECT at FROM audit_events WHERE action = 'database.backup'";

const emptied = `
  SELECT event_id AS "eventId", field, user_id AS pseudonym FROM audit_people WHERE user_id < 0 AND salt IS NULL`;

/** The condition for each part of a filter. */
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
