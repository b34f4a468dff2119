import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';
import { nextEvents, partsOf } from './outbox.ts';
import { requireWebhook } from './require-webhook.ts';

type Tools = Pick<Ports, 'store'>;

/** A webhook with the state of its events. */
export interface WebhookView {
  webhook: Webhook;
  /** Undelivered events; counted up to `maxCounted`. */
  backlog: number;
  /** The time of the oldest one. */
  oldestAt: number | undefined;
  /** The newest event that waits for a retry. */
  waiting: Delivery | undefined;
}

export const maxCounted = 1_000;

export async function viewWebhooks({ store }: Tools): Promise<WebhookView[]> {
  return Promise.all((await store.listWebhooks()).map((webhook) => viewOf({ store }, webhook)));
}

export async function viewWebhook({ store }: Tools, name: string): Promise<WebhookView> {
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

/** The state of the newest events of a webhook; with `isFailed`, only of those that were given up. */
export async function listDeliveries(
  { store }: Tools,
  { name, isFailed, limit }: { name: string; isFailed: boolean; limit: number },
): Promise<{ workspaceId: string; deliveries: Delivery[] }> {
  const { id: webhookId } = await requireWebhook({ store }, name);
  const { id: workspaceId } = await store.getWorkspace();
  const query = { webhookId, limit, ...(isFailed && { state: 'failed' as const }) };
  return { workspaceId, deliveries: await store.listDeliveries(query) };
}
