import type { AuditEvent } from '../../core/model.ts';
import type { Verdict } from '../../core/verdict.ts';
import type { OutboxEvent } from '../../core/webhooks/event-types.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import type { NewWebhookDeclaration } from '../../core/webhooks/webhook-changes.ts';
import type { DeliveryFilter, WebhookEdit, WebhookStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { deliveryColumns, selected, upsertInto, webhookColumns } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import { whereOf } from '../where.ts';
import { appendEvents, auditRows, chainEnd } from './audit.ts';
import { type ChangeRow, selectChange, toChange } from './change-row.ts';
import { declarationsOf, keepDeclarations } from './declarations.ts';
import type { Database, Reader, WriteTransaction } from './engine/database.ts';
import type { Bindings } from './engine/statement.ts';
import type { Nullable } from './key-row.ts';
import type { Nodes } from './nodes.ts';

export function webhookStore(db: Database, nodes: Pick<Nodes, 'id'>): WebhookStore {
  return {
    listWebhooks: () => allWebhooks(db),

    async updateWebhooks(judge) {
      await db.write(async (transaction) => {
        await keepEdit(transaction, judge(await allWebhooks(transaction), (await transaction.head()).id));
      });
    },

    async declareWebhooks(judge) {
      const node = await nodes.id();
      return db.write(async (transaction) => {
        const declared = await declarationsOf<NewWebhookDeclaration>(transaction, 'webhook_declarations', node);
        const [webhooks, head] = [await allWebhooks(transaction), await transaction.head()];
        const change = await keepEdit(transaction, judge({ webhooks, newestEvent: head.id, ...declared }));
        keepDeclarations(transaction, 'webhook_declarations', { node, ...change });
        return change.stillDeclared;
      });
    },

    async webhookDeclarations() {
      return declarationsOf<NewWebhookDeclaration>(db, 'webhook_declarations', await nodes.id());
    },

    async recordProgress({ webhookId, sequences }, judge) {
      await db.write(async (transaction) => {
        const [[webhook], deliveries] = await Promise.all([
          webhooksWhere(transaction, 'id = @webhookId', { webhookId }),
          listDeliveries(transaction, { webhookId, sequences, limit: sequences.length }),
        ]);
        if (webhook === undefined) return;
        const progress = judge({ webhook, deliveries });
        transaction.run(putWebhook, { ...webhook, ...progress.webhook });
        for (const delivery of progress.put) transaction.run(putDelivery, { ...delivery });
        if (progress.hurriedAt !== undefined) transaction.run(hurry, { webhookId, at: progress.hurriedAt });
        await appendEvents(transaction, progress.events);
      });
    },

    listDeliveries: (filter) => listDeliveries(db, filter),

    async trimDeliveries(step) {
      await db.write(async (transaction) => transaction.run(trim, step));
    },

    async eventsAfter({ after, actions, limit }) {
      return db.read(async (reader) => {
        const query = { after, actions, limit };
        const [events, end] = await Promise.all([
          auditRows(reader, 'action = ANY(@actions) AND id > @after ORDER BY id LIMIT @limit', query),
          chainEnd(reader),
        ]);
        const last = events.length === limit ? events.at(-1)?.id : undefined;
        return { events: await withChanges(reader, events), upTo: last ?? end.id };
      });
    },

    async findEvents(sequences) {
      return db.read(async (reader) =>
        withChanges(reader, await auditRows(reader, 'id = ANY(@sequences) ORDER BY id', { sequences })),
      );
    },
  };
}

async function keepEdit<Edit extends WebhookEdit>(
  transaction: WriteTransaction,
  verdict: Verdict<Edit>,
): Promise<Edit> {
  const { change, events } = allowed(verdict);
  for (const id of change.remove) transaction.run('DELETE FROM rankd.webhooks WHERE id = @id', { id });
  for (const webhook of change.put) transaction.run(putWebhook, { ...webhook });
  await appendEvents(transaction, events);
  return change;
}

/** The events with the changes that they are about. */
async function withChanges(db: Reader, events: readonly AuditEvent[]): Promise<OutboxEvent[]> {
  const ids = events.filter(({ action }) => action.startsWith('rank.')).map(({ subject }) => subject);
  const rows = ids.length === 0 ? [] : await db.all<ChangeRow>(`${selectChange} WHERE id = ANY(@ids)`, { ids });
  const changes = new Map(rows.map(toChange).map((change) => [change.id, change]));
  return events.map((event) => {
    const change = event.action.startsWith('rank.') ? changes.get(event.subject) : undefined;
    return { event, ...(change !== undefined && { change }) };
  });
}

const putWebhook = upsertInto('rankd.webhooks', webhookColumns, 'id');
const putDelivery = upsertInto('rankd.webhook_deliveries', deliveryColumns, 'webhook_id, sequence');

const hurry = `
  UPDATE rankd.webhook_deliveries SET next_try_at = @at
  WHERE webhook_id = @webhookId AND state = 'waiting' AND tries > 0 AND next_try_at > @at`;

const trim = `
  DELETE FROM rankd.webhook_deliveries
  WHERE state <> 'waiting' AND (last_at < @before OR (webhook_id, sequence) IN (
    SELECT webhook_id, sequence FROM (
      SELECT webhook_id, sequence, row_number() OVER (PARTITION BY webhook_id ORDER BY sequence DESC) AS place
      FROM rankd.webhook_deliveries WHERE state = 'delivered') AS delivered
    WHERE place > @keep))`;

function allWebhooks(db: Reader): Promise<Webhook[]> {
  return webhooksWhere(db, 'true ORDER BY name COLLATE "C"', {});
}

async function webhooksWhere(db: Reader, where: string, bindings: Bindings): Promise<Webhook[]> {
  const sql = `SELECT ${selected(webhookColumns)} FROM rankd.webhooks WHERE ${where}`;
  const rows = await db.all<Nullable<Webhook>>(sql, bindings);
  return rows.map(({ isForGames, ...row }) => ({ ...withoutNulls(row), ...(isForGames && { isForGames }) }));
}

async function listDeliveries(db: Reader, { oldestFirst, ...filter }: DeliveryFilter): Promise<Delivery[]> {
  const rows = await db.all<Nullable<Delivery>>(
    `SELECT ${selected(deliveryColumns)} FROM rankd.webhook_deliveries WHERE ${whereOf(conditions, filter)}
     ORDER BY sequence ${oldestFirst ? 'ASC' : 'DESC'} LIMIT @limit`,
    { ...filter },
  );
  return rows.map(withoutNulls);
}

const conditions = {
  webhookId: 'webhook_id = @webhookId',
  state: 'state = @state',
  dueAt: "state = 'waiting' AND next_try_at <= @dueAt",
  sequences: 'sequence = ANY(@sequences)',
} as const;
