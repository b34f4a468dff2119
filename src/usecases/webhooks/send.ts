import { RankdError } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import type { OutboundProxy } from '../../base/outbound-proxy.ts';
import { isoTime } from '../../base/time.ts';
import { version } from '../../base/version.ts';
import type { WebhooksConfig } from '../../config/config.ts';
import { type DiscordMessage, plainMessage } from '../../core/webhooks/discord.ts';
import { type Outcome, outcomeOf } from '../../core/webhooks/progress.ts';
import { signedHeaders, type Webhook, type WebhookAddress } from '../../core/webhooks/webhook.ts';
import { unknownWebhook } from '../../core/webhooks/webhook-changes.ts';
import type { Clock, Ports, WebhookSender } from '../../ports/index.ts';

export interface WebhookSettings {
  timeoutMs: number;
  proxy?: OutboundProxy | undefined;
  allowPrivate: readonly string[];
  /** `match`: a game can select one of the webhooks for games by sending its address. */
  callerUrl: 'ignore' | 'match';
  /** The addresses and secrets of declared webhooks, keyed by name. */
  declared: ReadonlyMap<string, { address: string; secret: string | undefined }>;
}

export function settingsOf({ targets, ...settings }: WebhooksConfig): WebhookSettings {
  const revealed = targets.map(
    ({ name, address, secret }) => [name, { address: address.reveal(), secret: secret?.reveal() }] as const,
  );
  return { ...settings, declared: new Map(revealed) };
}

export interface Sending {
  clock: Clock;
  sender: WebhookSender;
  webhooks: WebhookSettings;
}

/** Returns a webhook's address and secrets; `undefined` if the webhook is declared, but not by this configuration. */
export function targetOf(
  { webhooks, clock }: Pick<Sending, 'webhooks' | 'clock'>,
  { name, address, secret, oldSecret, oldSecretUntil = 0, declaredIn }: Webhook,
): { address: string; secrets: string[] } | undefined {
  const kept = declaredIn === undefined ? { address, secret } : webhooks.declared.get(name);
  if (kept?.address === undefined) return undefined;
  const old = oldSecretUntil > clock.now() ? [oldSecret] : [];
  return { address: kept.address, secrets: [kept.secret, ...old].filter((one) => one !== undefined) };
}

/** Returns the hash by which games select the webhook; `undefined` if it is unknown. */
export function hashOf({ address, addressHash: kept }: Webhook): string | undefined {
  return address === undefined ? kept : addressHash(address);
}

/**
 * Returns the hash of an address that a game sent; `undefined` if the address is invalid. rankd never calls an address
 * that a game sent.
 */
export function callerHash(text: string | undefined): string | undefined {
  return text === undefined || !URL.canParse(text) ? undefined : addressHash(new URL(text).href);
}

export function addressHash(address: string): string {
  return crypto().hash('sha256', address);
}

type Target = NonNullable<ReturnType<typeof targetOf>>;

/** Sends a signed event to a program. Rejects only if `signal` is aborted. */
export async function sendSigned(
  { clock, sender, webhooks }: Sending,
  { address, secrets }: Target,
  { id, body }: { id: string; body: string },
  signal?: AbortSignal,
): Promise<Outcome> {
  const headers = { 'content-type': 'application/json', ...signedHeaders({ id, body, atMs: clock.now() }, secrets) };
  const request = { method: 'POST', address, headers, body, secrets, ...boundsOf(webhooks) } as const;
  return outcomeOf('standard', await sender.send(request, signal), clock.now());
}

/** Sends a message and waits until Discord confirms that it was stored. Rejects only if `signal` is aborted. */
export async function sendMessage(
  { clock, sender, webhooks }: Sending,
  target: Target,
  message: DiscordMessage,
  signal?: AbortSignal,
): Promise<Outcome> {
  const url = new URL(target.address);
  url.searchParams.set('wait', 'true');
  const headers = { 'content-type': 'application/json', 'user-agent': `DiscordBot (rankd, ${version})` };
  const bounds = { address: url.href, secrets: [target.address], ...boundsOf(webhooks) };
  const request = { method: 'POST', headers, body: JSON.stringify(message), ...bounds } as const;
  return outcomeOf('discord', await sender.send(request, signal), clock.now());
}

export function boundsOf({ timeoutMs, allowPrivate, proxy }: WebhookSettings) {
  return { timeoutMs, allowPrivate, proxy };
}

type Tools = Pick<Ports, 'store' | 'clock'>;

export interface TestOutcome {
  webhook: Webhook;
  outcome: Outcome;
  ms: number;
}

/** Sends a test event directly, not through the outbox. */
export async function testWebhook(app: Sending & Tools, name: string): Promise<TestOutcome> {
  const webhook = await requireWebhook(app, name);
  const target = targetOf(app, webhook);
  if (target === undefined) {
    const message = `The address of the webhook ${webhook.name} is in the configuration, which was not read.`;
    throw new RankdError('config_invalid', message, { hint: 'add --config FILE' });
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

/**
 * Asks Discord for a webhook's name and channel. Returns `undefined` if Discord is unavailable or rate-limits the
 * request. Throws `usage` if there is no such webhook.
 */
export async function readDiscordWebhook(
  { sender, webhooks }: Sending,
  { address }: WebhookAddress,
): Promise<{ name: string; channelId: string } | undefined> {
  const answer = await sender.send({ method: 'GET', address, ...boundsOf(webhooks) });
  if (!answer.isAnswered || answer.status >= 500 || answer.status === 429) return undefined;
  if (answer.status >= 400) {
    throw new RankdError('usage', `Discord has no webhook at this address (${answer.status}).`, {
      hint: 'copy the address again: channel settings in Discord, Integrations, Webhooks, Copy Webhook URL',
    });
  }
  return { name: fieldIn(answer.text, 'name'), channelId: fieldIn(answer.text, 'channel_id') };
}

/** Extracts a string field with a regular expression, because a long response is cut off and is then invalid JSON. */
function fieldIn(text: string, name: string): string {
  const found = new RegExp(`"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
  return found === undefined ? '?' : String(JSON.parse(found));
}

export async function requireWebhook({ store }: Pick<Ports, 'store'>, name: string): Promise<Webhook> {
  const webhook = (await store.listWebhooks()).find((one) => one.name === name || one.id === name);
  if (webhook === undefined) throw unknownWebhook(name);
  return webhook;
}
