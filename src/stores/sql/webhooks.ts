import type { Verdict } from '../../core/events.ts';
import type { AuditEvent } from '../../core/model.ts';
import type { OutboxEvent } from '../../core/webhooks/event-types.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import type { NewWebhookDeclaration } from '../../core/webhooks/webhook-changes.ts';
import type { DeliveryFilter, WebhookEdit, WebhookStore } from '../../ports/index.ts';
import { appendEvents, auditRows, chainEnd } from './audit.ts';
import { type ChangeRow, selectChange, toChange } from './change-row.ts';
import {
  type Bindings,
  type Database,
  type DeclarationsOf,
  noDeclarations,
  type Reader,
  type Transaction,
  type WriteTransaction,
} from './database.ts';
import {
  allowed,
  deliveryColumns,
  type RowOf,
  selected,
  upserted,
  webhookColumns,
  whereOf,
  withoutNulls,
} from './rows.ts';

export function webhookStore(db: Database, declarationsOf: DeclarationsOf): WebhookStore {
  const { schema, anyOf } = db.sql;
  const putDelivery = `INSERT INTO ${schema}.webhook_deliveries ${upserted(deliveryColumns, 'webhook_id, sequence')}`;
  return {
    listWebhooks: () => allWebhooks(db),

    async updateWebhooks(judge) {
      await db.write(async (transaction) => {
        await applyEdit(transaction, judge(await allWebhooks(transaction), (await transaction.head()).id));
      });
    },

    async declareWebhooks(judge) {
      const declarations = await declarationsOf?.<NewWebhookDeclaration>('webhooks');
      return db.write(async (transaction) => {
        const nodes = (await declarations?.find(transaction)) ?? noDeclarations;
        const [webhooks, head] = [await allWebhooks(transaction), await transaction.head()];
        const facts = { webhooks, newestEvent: head.id, ...nodes };
        const change = await applyEdit(transaction, judge(facts));
        declarations?.store(transaction, change);
        return change.stillDeclared;
      });
    },

    async webhookDeclarations() {
      return (await declarationsOf?.<NewWebhookDeclaration>('webhooks'))?.find(db);
    },

    async recordProgress({ webhookId, sequences }, judge) {
      await db.write(async (transaction) => {
        const [[webhook], deliveries] = await Promise.all([
          webhooksWhere(transaction, 'id = @webhookId', { webhookId }),
          listDeliveries(transaction, { webhookId, sequences, limit: sequences.length }),
        ]);
        if (webhook === undefined) return;
        const progress = judge({ webhook, deliveries });
        putWebhook(transaction, { ...webhook, ...progress.webhook } as Webhook);
        for (const delivery of progress.put) transaction.run(putDelivery, { ...delivery });
        if (progress.retriesDueAt !== undefined)
          transaction.run(bringRetriesForward(schema), { webhookId, at: progress.retriesDueAt });
        await appendEvents(transaction, progress.events);
      });
    },

    listDeliveries: (filter) => listDeliveries(db, filter),

    async trimDeliveries(step) {
      await db.write(async (transaction) => transaction.run(trim(schema), step));
    },

    async eventsAfter({ after, actions, limit }) {
      return db.read(async (reader) => {
        const query = { after, actions, limit };
        const [events, end] = await Promise.all([
          auditRows(reader, `${anyOf('action', '@actions')} AND id > @after ORDER BY id LIMIT @limit`, query),
          chainEnd(reader),
        ]);
        const last = events.length === limit ? events.at(-1)?.id : undefined;
        return { events: await withChanges(reader, events), upTo: last ?? end.id };
      });
    },

    async findEvents(sequences) {
      return db.read(async (reader) =>
        withChanges(reader, await auditRows(reader, `${anyOf('id', '@sequences')} ORDER BY id`, { sequences })),
      );
    },
  };
}

async function applyEdit<Edit extends WebhookEdit>(
  transaction: WriteTransaction,
  verdict: Verdict<Edit>,
): Promise<Edit> {
  const { change, events } = allowed(verdict);
  for (const id of change.remove)
    transaction.run(`DELETE FROM ${transaction.sql.schema}.webhooks WHERE id = @id`, { id });
  for (const webhook of change.put) putWebhook(transaction, webhook);
  await appendEvents(transaction, events);
  return change;
}

function putWebhook(transaction: Transaction, { events, ...webhook }: Webhook): void {
  const put = `INSERT INTO ${transaction.sql.schema}.webhooks ${upserted(webhookColumns, 'id')}`;
  transaction.run(put, { ...webhook, events: JSON.stringify(events) });
}

/** Adds the rank change to each event that reports one. */
async function withChanges(db: Reader, events: readonly AuditEvent[]): Promise<OutboxEvent[]> {
  const ids = events.filter(({ action }) => action.startsWith('rank.')).map(({ subject }) => subject);
  const ofIds = `${selectChange(db.sql)} WHERE ${db.sql.anyOf('id', '@ids')}`;
  const rows = ids.length === 0 ? [] : await db.all<ChangeRow>(ofIds, { ids });
  const changes = new Map(rows.map(toChange).map((change) => [change.id, change]));
  return events.map((event) => {
    const change = event.action.startsWith('rank.') ? changes.get(event.subject) : undefined;
    return { event, ...(change !== undefined && { change }) };
  });
}

function bringRetriesForward(schema: string): string {
  return `
    UPDATE ${schema}.webhook_deliveries SET next_try_at = @at
    WHERE webhook_id = @webhookId AND state = 'waiting' AND tries > 0 AND next_try_at > @at`;
}

function trim(schema: string): string {
  return `
    DELETE FROM ${schema}.webhook_deliveries
    WHERE state <> 'waiting' AND (last_at < @before OR (webhook_id, sequence) IN (
      SELECT webhook_id, sequence FROM (
        SELECT webhook_id, sequence, row_number() OVER (PARTITION BY webhook_id ORDER BY sequence DESC) AS place
        FROM ${schema}.webhook_deliveries WHERE state = 'delivered') AS delivered
      WHERE place > @keep))`;
}

function allWebhooks(db: Reader): Promise<Webhook[]> {
  return webhooksWhere(db, `TRUE ORDER BY ${db.sql.byBytes('name')}`, {});
}

async function webhooksWhere(db: Reader, where: string, bindings: Bindings): Promise<Webhook[]> {
  const sql = `SELECT ${selected(webhookColumns)} FROM ${db.sql.schema}.webhooks WHERE ${where}`;
  const rows = await db.all<RowOf<Webhook>>(sql, bindings);
  return rows.map(({ events, isForGames, ...row }) => ({
    ...{ ...withoutNulls(row), events: JSON.parse(events), ...(isForGames && { isForGames: true }) },
  }));
}

async function listDeliveries(db: Reader, { oldestFirst, ...filter }: DeliveryFilter): Promise<Delivery[]> {
  const conditions = {
    webhookId: 'webhook_id = @webhookId',
    state: 'state = @state',
    dueAt: "state = 'waiting' AND next_try_at <= @dueAt",
    sequences: db.sql.anyOf('sequence', '@sequences'),
  } as const;
  const rows = await db.all<RowOf<Delivery>>(
    `SELECT ${selected(deliveryColumns)} FROM ${db.sql.schema}.webhook_deliveries WHERE ${whereOf(conditions, filter)}
     ORDER BY sequence ${oldestFirst ? 'ASC' : 'DESC'} LIMIT @limit`,
    { ...filter },
  );
  return rows.map(withoutNulls);
}
