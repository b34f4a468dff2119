import {
  type AuditRow,
  type ChainLink,
  chainStart,
  type EmptiedMention,
  forgetAction,
  lastRemovable,
} from '../../core/audit.ts';
import { type DomainEvent, eventOf, rowAfter } from '../../core/events.ts';
import { openStates } from '../../core/holds.ts';
import type { AuditEvent } from '../../core/model.ts';
import type { AuditFilter, AuditStore, Clock, RetentionStore } from '../../ports/index.ts';
import type { Bindings, Database, Reader, WriteTransaction } from './database.ts';
import { inStates, isDoneBy, isOpenChange, perEngine, whereOf } from './rows.ts';

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
      // The engine uses the `backups` index only if the action is a literal.
      const query = `SELECT at FROM ${db.sql.schema}.audit_events WHERE action = 'database.backup' ORDER BY id DESC LIMIT 1`;
      return (await db.get<{ at: number }>(query))?.at;
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
          reader.all<EmptiedMention>(
            `SELECT event_id AS "eventId", field, user_id AS pseudonym FROM ${reader.sql.schema}.audit_people
             WHERE user_id < 0 AND salt IS NULL`,
          ),
        ]);
        return { anchorId: anchor.id, lastId: end.id, mentions };
      });
    },
  };
}

export async function auditRows(db: Reader, condition: string, bindings: Bindings): Promise<AuditEvent[]> {
  return (await rowsWhere(db, condition, bindings)).map(eventOf);
}

/** Appends events to the audit chain in the transaction of the change that they report. */
export async function appendEvents(transaction: WriteTransaction, events: readonly DomainEvent[]): Promise<void> {
  if (events.length === 0) return;
  let last = await transaction.head();
  for (const event of events) {
    const { people, ...row } = rowAfter(last, event);
    const keyId = typeof event.detail['keyId'] === 'string' ? event.detail['keyId'] : null;
    transaction.run(insertEvent(transaction.sql), { ...row, keyId });
    for (const person of people) transaction.run(insertPerson(transaction.sql), { eventId: row.id, ...person });
    last = { id: row.id, hash: row.hash };
    transaction.moveHead(last);
  }
}

export const insertEvent = perEngine(
  ({ schema, bytesOf }) => `
  INSERT INTO ${schema}.audit_events (id, at, done_by, action, subject, key_id, detail, hash)
  VALUES (@id, @at, @by, @action, @subject, @keyId, @detail, ${bytesOf('@hash')})`,
);

const insertPerson = perEngine(
  ({ schema }) =>
    `INSERT INTO ${schema}.audit_people (event_id, field, user_id, salt) VALUES (@eventId, @field, @userId, @salt)`,
);

/** Returns the link before the oldest stored event. */
async function chainAnchor(db: Reader): Promise<ChainLink> {
  const query = `SELECT last_id AS id, ${db.sql.hexOf('hash')} AS hash FROM ${db.sql.schema}.audit_anchor`;
  return (await db.get<ChainLink>(query)) ?? chainStart;
}

function chainRows(db: Reader, page: { afterId: number; limit: number }): Promise<AuditRow[]> {
  return rowsWhere(db, 'id > @afterId ORDER BY id LIMIT @limit', page);
}

/** Returns the link of the newest event ever written, even if that event has been pruned. */
export async function chainEnd(db: Reader): Promise<ChainLink> {
  return (await db.get<ChainLink>(db.sql.chainEnd)) ?? chainStart;
}

async function rowsWhere(db: Reader, condition: string, bindings: Bindings): Promise<AuditRow[]> {
  const { schema, hexOf, jsonRows, parse, byBytes } = db.sql;
  const person = jsonRows({ field: 'field', userId: 'user_id', salt: 'salt' }, byBytes('field'));
  const rows = await db.all<Omit<AuditRow, 'people'> & { people: string }>(
    `SELECT id, at, done_by AS "by", action, subject, detail, ${hexOf('hash')} AS hash,
            (SELECT ${person} FROM ${schema}.audit_people WHERE event_id = id) AS people
     FROM ${schema}.audit_events WHERE ${condition}`,
    bindings,
  );
  return rows.map(({ people, ...row }) => ({ ...row, people: parse(people) as AuditRow['people'] }));
}

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

export function retentionStore(db: Database): RetentionStore {
  const { schema, anyOf, bytesOf, greatest } = db.sql;
  return {
    async pruneChanges({ cursor = '0', before, limit }) {
      const step = { before, limit, after: Number(cursor) };
      return db.write(async (transaction) => {
        const rows = await transaction.all<{ seq: number; isOpen: boolean | number; isOld: boolean | number }>(
          `SELECT seq, ${isOpenChange} AS "isOpen",
                  ${greatest('requested_at', 'coalesce(finished_at, requested_at)')} < @before AS "isOld"
           FROM ${schema}.rank_changes WHERE seq > @after ORDER BY seq LIMIT @limit`,
          step,
        );
        const seqs = rows.filter(({ isOpen, isOld }) => isOld && !isOpen).map(({ seq }) => seq);
        transaction.run(`DELETE FROM ${schema}.rank_changes WHERE ${anyOf('seq', '@seqs')}`, { seqs });
        transaction.run(
          `DELETE FROM ${schema}.holds WHERE ended_at < @before AND NOT ${inStates(openStates)}
             AND NOT EXISTS (SELECT 1 FROM ${schema}.rank_changes WHERE rank_changes.id = change_id)`,
          step,
        );
        const last = rows.at(-1);
        const hasMore = last !== undefined && rows.length === limit && rows.some(({ isOld }) => isOld);
        return { removed: seqs.length, ...(hasMore && { next: String(last.seq) }) };
      });
    },

    async pruneAudit({ upToId, limit }) {
      return db.write(async (transaction) => {
        const anchor = await chainAnchor(transaction);
        const rows = await chainRows(transaction, { afterId: anchor.id, limit });
        const last = lastRemovable(anchor, rows, ({ id }) => id <= upToId);
        if (last === anchor) return 0;
        const { id: lastId } = last;
        transaction.run(`UPDATE ${schema}.audit_anchor SET last_id = @id, hash = ${bytesOf('@hash')}`, { ...last });
        transaction.run(`DELETE FROM ${schema}.audit_events WHERE id <= @lastId`, { lastId });
        transaction.run(`DELETE FROM ${schema}.audit_people WHERE event_id <= @lastId AND salt IS NOT NULL`, {
          lastId,
        });
        for (const { id, action, subject } of rows) {
          if (id > lastId || action !== forgetAction) continue;
          transaction.run(`DELETE FROM ${schema}.audit_people WHERE user_id = @pseudonym`, {
            pseudonym: Number(subject),
          });
        }
        return lastId - anchor.id;
      });
    },
  };
}
