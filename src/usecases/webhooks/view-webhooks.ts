import { RankdError } from '../../base/errors.ts';
import { webhookEvent } from '../../core/events.ts';
import { typeOf } from '../../core/webhooks/event-types.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';
import { isPassed, nextEvents, partsOf } from './outbox.ts';
import { requireWebhook } from './send.ts';

export interface WebhookView {
  webhook: Webhook;
  /** The number of undelivered events. Alarms, other events and retries are each counted only up to `maxCounted`. */
  backlog: number;
  oldestAt: number | undefined;
  /** The newest event that is waiting for a retry. */
  waiting: Delivery | undefined;
}

export const maxCounted = 1_000;

export async function viewWebhooks({ store }: Pick<Ports, 'store'>): Promise<WebhookView[]> {
  return Promise.all((await store.listWebhooks()).map((webhook) => viewOf({ store }, webhook)));
}

export async function viewWebhook({ store }: Pick<Ports, 'store'>, name: string): Promise<WebhookView> {
  return viewOf({ store }, await requireWebhook({ store }, name));
}

async function viewOf({ store }: Pick<Ports, 'store'>, webhook: Webhook): Promise<WebhookView> {
  const pages = partsOf(webhook).map(({ part, after }) =>
    nextEvents({ store }, { webhook, part }, { after, limit: maxCounted }),
  );
  const behind = (await Promise.all(pages)).flatMap(({ events }) => events.map(({ event }) => event));
  const query = { webhookId: webhook.id, state: 'waiting', oldestFirst: true, limit: maxCounted } as const;
  const again = (await store.listDeliveries(query)).filter(({ sequence }) => !behind.some(({ id }) => id === sequence));
  const times = [...behind.map(({ at }) => at), ...again.map(({ firstAt }) => firstAt)];
  return {
    webhook,
    backlog: behind.length + again.length,
    oldestAt: times.length === 0 ? undefined : Math.min(...times),
    waiting: again.at(-1),
  };
}

/** Lists a webhook's newest deliveries; with `isFailed`, only those that rankd has given up on. */
export async function listDeliveries(
  { store }: Pick<Ports, 'store'>,
  { name, isFailed, limit }: { name: string; isFailed: boolean; limit: number },
): Promise<{ workspaceId: string; deliveries: Delivery[] }> {
  const { id: webhookId } = await requireWebhook({ store }, name);
  const { id: workspaceId } = await store.getWorkspace();
  const query = { webhookId, limit, ...(isFailed && { state: 'failed' as const }) };
  return { workspaceId, deliveries: await store.listDeliveries(query) };
}

interface Redelivery {
  sequences?: number[] | undefined;
  isFailed?: boolean | undefined;
  since?: number | undefined;
  until?: number | undefined;
}

/** Returns the selected events that the webhook's cursor has passed. Throws `not_found` if there are none. */
export async function eventsToRedeliver(
  { store }: Pick<Ports, 'store'>,
  { name, sequences, isFailed, since, until }: Redelivery & { name: string },
): Promise<Array<{ sequence: number; type: Delivery['type'] }>> {
  const webhook = await requireWebhook({ store }, name);
  const failed = isFailed
    ? await store.listDeliveries({ webhookId: webhook.id, state: 'failed', oldestFirst: true, limit: 10_000 })
    : [];
  const named = await store.findEvents([...(sequences ?? []), ...failed.map(({ sequence }) => sequence)]);
  const limit = 10_000;
  const lanes = since === undefined ? [] : partsOf(webhook);
  const past = await Promise.all(
    lanes.map(({ part }) => nextEvents({ store }, { webhook, part }, { after: 0, limit })),
  );
  const found = [
    ...named,
    ...past
      .flatMap(({ events }) => events)
      .filter(({ event }) => event.at >= (since ?? 0) && event.at < (until ?? Number.POSITIVE_INFINITY)),
  ];
  const chosen = found.flatMap((one) => {
    const type = typeOf(one);
    const delivery = type && { sequence: one.event.id, type };
    return delivery && isPassed(webhook, delivery) ? [delivery] : [];
  });
  if (chosen.length > 0) return [...new Map(chosen.map((one) => [one.sequence, one])).values()];
  throw new RankdError('not_found', `The webhook ${webhook.name} has no such event to redeliver.`, {
    hint: `rankd webhook deliveries ${webhook.name}`,
  });
}

/** Schedules events for redelivery under their original ids. */
export async function redeliver(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  {
    name,
    events,
    by,
  }: { name: string; events: ReadonlyArray<{ sequence: number; type: Delivery['type'] }>; by: string },
): Promise<void> {
  const webhook = await requireWebhook({ store }, name);
  const now = clock.now();
  const detail = { count: events.length, first: events[0]?.sequence };
  await store.recordProgress({ webhookId: webhook.id, sequences: [] }, () => ({
    webhook: {},
    put: events.map((event) => ({
      ...{ webhookId: webhook.id, ...event, state: 'waiting', tries: 0 },
      ...{ nextTryAt: now, firstAt: now, lastAt: now },
    })),
    events: [webhookEvent('redeliver', webhook, detail, { by, at: now })],
  }));
}
