import type { Verdict } from '../../core/verdict.ts';
import type { OutboxEvent } from '../../core/webhooks/event-types.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import type { WebhookFacts } from '../../core/webhooks/webhook-changes.ts';
import type { DeliveryFilter, WebhookEdit, WebhookStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { absent, deliveryColumns, selected, upsertInto, webhookColumns } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import { whereOf } from '../where.ts';
import { appendEvents, auditRows, chainEnd } from './audit.ts';
import { findChange } from './change-queries.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';

export function webhookStore(db: Connection): WebhookStore {
  const put = (webhook: Webhook) => {
    const { events, isForGames } = webhook;
    const games = isForGames === undefined ? null : Number(isForGames);
    db.run(putWebhook, { ...absent(webhookColumns), ...webhook, events: JSON.stringify(events), isForGames: games });
  };
  const putOne = (delivery: Delivery) => db.run(putDelivery, { ...absent(deliveryColumns), ...delivery });
  const update = (judge: (facts: WebhookFacts) => Verdict<WebhookEdit>) =>
    db.write(() => {
      const facts = { webhooks: allWebhooks(db), newestEvent: chainEnd(db).id, kept: [], elsewhere: [] };
      const { change, events } = allowed(judge(facts));
      for (const id of change.remove) db.run('DELETE FROM webhooks WHERE id = @id', { id });
      for (const webhook of change.put) put(webhook);
      appendEvents(db, events);
    });
  return {
    async listWebhooks() {
      return allWebhooks(db);
    },

    updateWebhooks: (judge) => update(({ webhooks, newestEvent }) => judge(webhooks, newestEvent)),

    async declareWebhooks(judge) {
      await update(judge);
      return [];
    },

    async webhookDeclarations() {
      return undefined;
    },

    async recordProgress({ webhookId, sequences }, judge) {
      await db.write(() => {
        const row = db.get<WebhookRow>(`${selectWebhook} WHERE id = @webhookId`, { webhookId });
        if (row === undefined) return;
        const webhook = toWebhook(row);
        const deliveries = listDeliveries(db, { webhookId, sequences, limit: sequences.length });
        const progress = judge({ webhook, deliveries });
        const changed = Object.entries({ ...webhook, ...progress.webhook }).filter(([, value]) => value !== undefined);
        put(Object.fromEntries(changed) as unknown as Webhook);
        for (const delivery of progress.put) putOne(delivery);
        if (progress.hurriedAt !== undefined) db.run(hurry, { webhookId, at: progress.hurriedAt });
        appendEvents(db, progress.events);
      });
    },

    async listDeliveries(filter) {
      return listDeliveries(db, filter);
    },

    async trimDeliveries(step) {
      await db.write(() => db.run(trim, step));
    },

    async eventsAfter({ after, actions, limit }) {
      return db.read(() => {
        const query = { after, actions: JSON.stringify(actions), limit };
        const events = auditRows(db, `${isAction} AND id > @after ORDER BY id LIMIT @limit`, query);
        const last = events.length === limit ? events.at(-1)?.id : undefined;
        return { events: events.map((event) => withChange(db, event)), upTo: last ?? chainEnd(db).id };
      });
    },

    async findEvents(sequences) {
      return db.read(() => {
        const ids = JSON.stringify(sequences);
        const events = auditRows(db, 'id IN (SELECT value FROM json_each(@ids)) ORDER BY id', { ids });
        return events.map((event) => withChange(db, event));
      });
    },
  };
}

function withChange(db: Connection, event: OutboxEvent['event']): OutboxEvent {
  const change = event.action.startsWith('rank.') ? findChange(db, event.subject) : undefined;
  return { event, ...(change !== undefined && { change }) };
}

const isAction = 'action IN (SELECT value FROM json_each(@actions))';

const putWebhook = upsertInto('webhooks', webhookColumns, 'id');
const putDelivery = upsertInto('webhook_deliveries', deliveryColumns, 'webhook_id, sequence');

const selectWebhook = `SELECT ${selected(webhookColumns)} FROM webhooks`;

const hurry = `
  UPDATE webhook_deliveries SET next_try_at = @at
  WHERE webhook_id = @webhookId AND state = 'waiting' AND tries > 0 AND next_try_at > @at`;

const trim = `
  DELETE FROM webhook_deliveries
  WHERE state <> 'waiting' AND (last_at < @before OR (webhook_id, sequence) IN (
    SELECT webhook_id, sequence FROM (
      SELECT webhook_id, sequence, row_number() OVER (PARTITION BY webhook_id ORDER BY sequence DESC) AS place
      FROM webhook_deliveries WHERE state = 'delivered')
    WHERE place > @keep))`;

function allWebhooks(db: Connection): Webhook[] {
  return db.all<WebhookRow>(`${selectWebhook} ORDER BY name`).map(toWebhook);
}

type WebhookRow = RowOf<Webhook>;

function toWebhook({ events, isForGames, ...row }: WebhookRow): Webhook {
  return { ...withoutNulls(row), events: JSON.parse(events), ...(isForGames === 1 && { isForGames: true }) };
}

function listDeliveries(db: Connection, { oldestFirst, sequences, ...filter }: DeliveryFilter): Delivery[] {
  const query = { ...filter, ...(sequences !== undefined && { sequences: JSON.stringify(sequences) }) };
  const rows = db.all<RowOf<Delivery>>(
    `SELECT ${selected(deliveryColumns)} FROM webhook_deliveries WHERE ${whereOf(conditions, query)}
     ORDER BY sequence ${oldestFirst ? 'ASC' : 'DESC'} LIMIT @limit`,
    query,
  );
  return rows.map((row) => withoutNulls(row));
}

const conditions = {
  webhookId: 'webhook_id = @webhookId',
  state: 'state = @state',
  dueAt: "state = 'waiting' AND next_try_at <= @dueAt",
  sequences: 'sequence IN (SELECT value FROM json_each(@sequences))',
} as const;
