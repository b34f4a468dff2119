import { RankdError } from '../../base/errors.ts';
import { webhookEvent } from '../../core/events.ts';
import { typeOf } from '../../core/webhooks/event-types.ts';
import type { Delivery } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';
import { isPassed, nextEvents, partsOf } from './outbox.ts';
import { requireWebhook } from './require-webhook.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

/** The events to redeliver. */
export interface Redelivery {
  sequences?: number[] | undefined;
  isFailed?: boolean | undefined;
  since?: number | undefined;
  until?: number | undefined;
}

/** The selected events among those that the webhook got, or was to get. Throws `not_found` if there is none. */
export async function eventsToRedeliver(
  { store }: Tools,
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
  throw new RankdError('not_found', `There is no such event to send to ${webhook.name} again.`, {
    hint: `rankd webhook deliveries ${webhook.name}`,
  });
}

/** Schedules these events for redelivery, under their ids. */
export async function redeliver(
  { store, clock }: Tools,
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
