import { RankdError } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { isoTime } from '../../base/time.ts';
import { newId } from '../../core/api-key.ts';
import { webhookEvent } from '../../core/events.ts';
import { readAddress, type WebhookAddress } from '../../core/webhooks/address.ts';
import { plainMessage } from '../../core/webhooks/discord-message.ts';
import { flawOfEvents } from '../../core/webhooks/event-types.ts';
import type { Outcome } from '../../core/webhooks/progress.ts';
import { newWebhookSecret } from '../../core/webhooks/signature.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import { judgeNewWebhook, judgeOne, unknownWebhook } from '../../core/webhooks/webhook-changes.ts';
import type { Ports } from '../../ports/index.ts';
import type { KeepSecret } from '../keys/keys.ts';
import { nextEvents } from './outbox.ts';
import { addressHash, boundsOf, type Sending, sendMessage, sendSigned, targetOf } from './target.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

export interface WebhookRequest {
  name: string;
  target: WebhookAddress;
  events: string[];
  mention?: string | undefined;
  isForGames?: boolean | undefined;
  by: string;
}

/** Makes a webhook; one for programs has a secret, which is shown this once. Throws `already_exists` and `conflict`. */
export async function addWebhook(
  { store, clock }: Tools,
  { name, target, events, mention, isForGames, by }: WebhookRequest,
  keep: KeepSecret = () => () => undefined,
): Promise<{ webhook: Webhook; secret: string | undefined }> {
  const secret = target.kind === 'standard' ? newWebhookSecret() : undefined;
  const takeBack = secret === undefined ? () => undefined : keep(secret);
  const webhook = {
    ...{ id: newId('wh'), name, events, createdAt: clock.now(), ...target },
    ...(secret !== undefined && { secret }),
    ...(mention !== undefined && { mention }),
    ...(isForGames && { isForGames }),
  };
  try {
    await store.updateWebhooks(judgeNewWebhook(webhook, { by, at: clock.now() }));
  } catch (error) {
    takeBack();
    throw error;
  }
  return { webhook: await requireWebhook({ store }, name), secret };
}

/** Throws the refusal of `readAddress`. */
export function addressFrom(text: string, kind?: Webhook['kind']): WebhookAddress {
  const read = readAddress(text, kind);
  if ('refusal' in read) throw read.refusal;
  return read;
}

/** Throws `usage` if nothing can ever be sent to the address, as every try would find. */
export async function refuseForbidden(
  { courier, webhooks }: Sending,
  { address, shown }: WebhookAddress,
): Promise<void> {
  const why = await courier.whyForbidden({ address, allowPrivate: webhooks.allowPrivate });
  if (why === undefined) return;
  throw new RankdError('usage', `Nothing can be sent to ${shown}: ${why}.`, {
    hint: 'allow the network of your own machine in the configuration: webhooks: { allow_private: [192.168.1.0/24] }',
  });
}

/** Throws `usage` if there is no such event. */
export function eventsFrom(names: readonly string[]): string[] {
  for (const name of names) {
    const flaw = flawOfEvents(name);
    if (flaw === undefined) continue;
    const hint = flaw.suggestion === undefined ? 'rankd webhook add --help lists them' : `--events ${flaw.suggestion}`;
    throw new RankdError('usage', flaw.message, { hint });
  }
  return [...new Set(names)];
}

/** Nothing is delivered any more, not even what waits. */
export async function removeWebhook(
  { store, clock }: Tools,
  { name, by }: { name: string; by: string },
): Promise<void> {
  const doing = { by, at: clock.now() };
  await store.updateWebhooks(
    judgeOne(name, (webhook) => ({ change: 'removed', events: [webhookEvent('remove', webhook, {}, doing)] })),
  );
}

export async function requireWebhook({ store }: Pick<Ports, 'store'>, name: string): Promise<Webhook> {
  const webhook = (await store.listWebhooks()).find((one) => one.name === name || one.id === name);
  if (webhook === undefined) throw unknownWebhook(name);
  return webhook;
}

/** A webhook with what is on its way. */
export interface WebhookView {
  webhook: Webhook;
  /** Events that are not delivered yet; counted up to `maxCounted`. */
  backlog: number;
  /** When the oldest of them happened. */
  oldestAt: number | undefined;
  /** The newest that waits for another try. */
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
  const hash = webhook.address === undefined ? undefined : addressHash(webhook.address);
  const parts = webhook.kind === 'discord' ? (['alarms', 'log'] as const) : [undefined];
  const pages = parts.map((part) => {
    const after = part === 'alarms' ? webhook.alarmCursor : webhook.cursor;
    return nextEvents({ store }, { webhook, addressHash: hash, ...(part && { part }) }, { after, limit: maxCounted });
  });
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

export interface TestOutcome {
  webhook: Webhook;
  outcome: Outcome;
  ms: number;
}

/** Sends one event that says it is a test, at once and not through the outbox. */
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

/** What Discord says a webhook is called. Throws `not_found` if there is none at this address any more. */
export async function lookAtDiscord(
  { courier, webhooks }: Sending,
  { address }: WebhookAddress,
): Promise<{ name: string; channelId: string } | undefined> {
  const answer = await courier.send({ method: 'GET', address, ...boundsOf(webhooks) });
  if (!answer.isAnswered || answer.status >= 500 || answer.status === 429) return undefined;
  if (answer.status >= 400) {
    throw new RankdError('usage', `Discord knows no webhook at this address (${answer.status}).`, {
      hint: 'in Discord: channel settings, Integrations, Webhooks, Copy Webhook URL',
    });
  }
  return { name: fieldIn(answer.text, 'name'), channelId: fieldIn(answer.text, 'channel_id') };
}

/** Only the beginning of an answer is read, so it may be no whole JSON. */
function fieldIn(text: string, name: string): string {
  const found = new RegExp(`"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
  return found === undefined ? '?' : String(JSON.parse(found));
}
