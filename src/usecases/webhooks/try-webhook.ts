import { RankdError } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { isoTime } from '../../base/time.ts';
import type { WebhookAddress } from '../../core/webhooks/address.ts';
import { plainMessage } from '../../core/webhooks/discord-message.ts';
import type { Outcome } from '../../core/webhooks/progress.ts';
import type { Webhook } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';
import { requireWebhook } from './require-webhook.ts';
import { boundsOf, type Sending, sendMessage, sendSigned, targetOf } from './target.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

export interface TestOutcome {
  webhook: Webhook;
  outcome: Outcome;
  ms: number;
}

/** Sends one test event, directly and not through the outbox. */
export async function testWebhook(app: Sending & Tools, name: string): Promise<TestOutcome> {
  const webhook = await requireWebhook(app, name);
  const target = targetOf(app, webhook);
  if (target === undefined) {
    const message = `The address of ${webhook.name} is in the configuration, which was not read.`;
    throw new RankdError('config_invalid', message, { hint: 'name the configuration file with --config' });
  }
  const before = app.clock.monotonic();
  const outcome = await (webhook.kind === 'discord'
    ? sendMessage(app, target, plainMessage(`rankd is connected: the webhook ${webhook.name} works.`))
    : sendSigned(app, target, await testEvent(app, webhook)));
  return { webhook, outcome, ms: Math.round(app.clock.monotonic() - before) };
}

async function testEvent({ store, clock }: Tools, { name }: Webhook): Promise<{ id: string; body: string }> {
  const { id: workspaceId } = await store.getWorkspace();
  const id = `evt_${workspaceId}_test_${crypto().randomUUID()}`;
  const data = { workspaceId, webhook: name };
  return { id, body: JSON.stringify({ type: 'webhook.test', timestamp: isoTime(clock.now()), data }) };
}

/** The name of a webhook in Discord. Throws `not_found` if there is no longer one at this address. */
export async function lookAtDiscord(
  { sender, webhooks }: Sending,
  { address }: WebhookAddress,
): Promise<{ name: string; channelId: string } | undefined> {
  const answer = await sender.send({ method: 'GET', address, ...boundsOf(webhooks) });
  if (!answer.isAnswered || answer.status >= 500 || answer.status === 429) return undefined;
  if (answer.status >= 400) {
    throw new RankdError('usage', `Discord knows no webhook at this address (${answer.status}).`, {
      hint: 'in Discord: channel settings, Integrations, Webhooks, Copy Webhook URL',
    });
  }
  return { name: fieldIn(answer.text, 'name'), channelId: fieldIn(answer.text, 'channel_id') };
}

/** Only the beginning of a response is read, so it may be incomplete JSON. */
function fieldIn(text: string, name: string): string {
  const found = new RegExp(`"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
  return found === undefined ? '?' : String(JSON.parse(found));
}
