import { type AuditPerson, type AuditRow, type ChainLink, chainStart, type EmptiedMention } from '../../core/audit.ts';
import { eventOf, rowAfter } from '../../core/audit-row.ts';
import type { DomainEvent } from '../../core/events.ts';
import type { AuditEvent } from '../../core/model.ts';
import type { AuditFilter, AuditStore, Clock } from '../../ports/index.ts';
import { isDoneBy, whereOf } from '../where.ts';
import type { Database, Reader, WriteTransaction } from './engine/database.ts';
import { type Bindings, fromText } from './engine/statement.ts';

export function auditStore(db: Database, clock: Pick<Clock, 'now'>): AuditStore {
  return {
    async appendAudit(event) {
      await db.write((transaction) => appendEvents(transaction, [{ ...event, at: clock.now() }]));
    },

    async listAudit(filter) {
      const order = filter.oldestFirst ? 'ASC' : 'DESC';
      return auditRows(db, `${whereOf(conditions, filter)} ORDER BY id ${order} LIMIT @limit`, { ...filter });
    },

    async lastBackupAt() {
      return (await db.get<{ at: number }>(`${backups} ORDER BY id DESC LIMIT 1`))?.at;
    },

    async auditChain(page) {
      return db.read(async (reader) => {
        const [anchor, rows, end] = await Promise.all([chainAnchor(reader), chainRows(reader, page), chainEnd(reader)]);
        return { anchor, rows, lastId: end.id };
      });
    },

    async emptiedMentions() {
      return db.read(async (reader) => {
        const [anchor, end, mentions] = await Promise.all([
          chainAnchor(reader),
          chainEnd(reader),
          reader.all<EmptiedMention>(emptied, {}),
        ]);
        return { anchorId: anchor.id, lastId: end.id, mentions };
      });
    },
  };
}

/** The events that an SQL condition selects, with the people whom they name. */
export async function auditRows(db: Reader, condition: string, bindings: Bindings): Promise<AuditEvent[]> {
  const rows = await db.all<StoredRow>(`SELECT ${fields} FROM rankd.audit_events WHERE ${condition}`, bindings);
  return rows.map(toRow).map(eventOf);
}

/** Adds events at the end of the chain, in the transaction of what they tell of. `detail` never holds a secret or its hash. */
export async function appendEvents(transaction: WriteTransaction, events: readonly DomainEvent[]): Promise<void> {
  let last = await transaction.head();
  for (const event of events) {
    const { people, ...row } = rowAfter(last, event);
    const keyId = typeof event.detail['keyId'] === 'string' ? event.detail['keyId'] : null;
    transaction.run(insertEvent, {
      ...{ ...row, keyId, fields: people.map(({ field }) => field) },
      ...{ userIds: people.map(({ userId }) => userId), salts: people.map(({ salt }) => salt) },
    });
    last = { id: row.id, hash: row.hash };
    transaction.moveHead(last);
  }
}

/** The event, the people whom it names, and the head, which stands on it from now on. */
const insertEvent = `
  WITH event AS (
    INSERT INTO rankd.audit_events (id, at, done_by, action, subject, key_id, detail, hash)
    VALUES (@id, @at, @by, @action, @subject, @keyId, @detail, decode(@hash, 'hex'))
  ), people AS (
    INSERT INTO rankd.audit_people (event_id, field, user_id, salt)
    SELECT @id, * FROM unnest(@fields::text[], @userIds::bigint[], @salts::text[])
  )
  UPDATE rankd.audit_head SET last_id = @id, hash = decode(@hash, 'hex')`;

/** The link before the first row. */
export async function chainAnchor(db: Reader): Promise<ChainLink> {
  const query = `SELECT last_id AS id, encode(hash, 'hex') AS hash FROM rankd.audit_anchor`;
  return (await db.get<ChainLink>(query)) ?? chainStart;
}

/** In order, after a row. */
export async function chainRows(db: Reader, page: { afterId: number; limit: number }): Promise<AuditRow[]> {
  const query = `SELECT ${fields} FROM rankd.audit_events WHERE id > @afterId ORDER BY id LIMIT @limit`;
  return (await db.all<StoredRow>(query, page)).map(toRow);
}

/** The newest row ever written, also where it is no longer there. */
export async function chainEnd(db: Reader): Promise<ChainLink> {
  const query = `SELECT last_id AS id, encode(hash, 'hex') AS hash FROM rankd.audit_head`;
  return (await db.get<ChainLink>(query)) ?? chainStart;
}

const fields = `
  id, at, done_by AS "by", action, subject, detail, encode(hash, 'hex') AS hash,
  (SELECT json_agg(json_build_object('field', field, 'userId', user_id, 'salt', salt) ORDER BY field COLLATE "C")
   FROM rankd.audit_people WHERE event_id = id) AS people`;

/** A row as it is selected; `people` is null if it names nobody. */
type StoredRow = Omit<AuditRow, 'people'> & { people: AuditPerson[] | null };

function toRow({ people, ...row }: StoredRow): AuditRow {
  return { ...row, people: (people ?? []).map(({ field, ...person }) => ({ field: fromText(field), ...person })) };
}

/** The literal is the one of the index `backups`. */
const backups = "SELECT at FROM rankd.audit_events WHERE action = 'database.backup'";

const emptied = `
  SELECT event_id AS "eventId", field, user_id AS pseudonym FROM rankd.audit_people WHERE user_id < 0 AND salt IS NULL`;

/** The condition for each part of a filter. */
const conditions = {
  since: 'at >= @since',
  until: 'at < @until',
  by: isDoneBy,
  action: "(action = @action OR substr(action, 1, length(@action) + 1) = @action || '.')",
  subject: 'subject = @subject',
  keyId: "(subject = @keyId OR done_by = 'key:' || @keyId OR key_id = @keyId)",
  afterId: 'id > @afterId',
  beforeId: 'id < @beforeId',
} as const satisfies Record<Exclude<keyof AuditFilter, 'limit' | 'oldestFirst'>, string>;
