import type { Webhook } from '../../core/webhooks/webhook.ts';
import { unknownWebhook } from '../../core/webhooks/webhook-changes.ts';
import type { Ports } from '../../ports/index.ts';

/** The webhook of this name or id. Throws `not_found`. */
export async function requireWebhook({ store }: Pick<Ports, 'store'>, name: string): Promise<Webhook> {
  const webhook = (await store.listWebhooks()).find((one) => one.name === name || one.id === name);
  if (webhook === undefined) throw unknownWebhook(name);
  return webhook;
}
