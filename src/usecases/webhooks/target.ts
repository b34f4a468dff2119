import { crypto } from '../../base/node-modules.ts';
import type { OutboundProxy } from '../../base/outbound-proxy.ts';
import { version } from '../../base/version.ts';
import type { WebhooksConfig } from '../../config/config.ts';
import { outcomeOf } from '../../core/webhooks/answers.ts';
import type { DiscordMessage } from '../../core/webhooks/discord-message.ts';
import type { Outcome } from '../../core/webhooks/progress.ts';
import { signedHeaders } from '../../core/webhooks/signature.ts';
import type { Webhook } from '../../core/webhooks/webhook.ts';
import type { Clock, WebhookSender } from '../../ports/index.ts';

/** The configuration of webhooks. */
export interface WebhookSettings {
  timeoutMs: number;
  proxy?: OutboundProxy | undefined;
  /** Private networks that may be called nevertheless. */
  allowPrivate: readonly string[];
  /** `match`: a game can choose among the webhooks for games. */
  callerUrl: 'ignore' | 'match';
  /** Addresses and secrets of declared webhooks, by name. */
  declared: ReadonlyMap<string, { address: string; secret: string | undefined }>;
}

export function settingsOf({ targets, ...settings }: WebhooksConfig): WebhookSettings {
  const revealed = targets.map(
    ({ name, address, secret }) => [name, { address: address.reveal(), secret: secret?.reveal() }] as const,
  );
  return { ...settings, declared: new Map(revealed) };
}

/** The context for sending. */
export interface Sending {
  clock: Clock;
  sender: WebhookSender;
  webhooks: WebhookSettings;
}

/** The address and the secrets of a webhook. `undefined` if the configuration no longer declares it. */
export function targetOf(
  { webhooks, clock }: Pick<Sending, 'webhooks' | 'clock'>,
  { name, address, secret, oldSecret, oldSecretUntil = 0, declaredIn }: Webhook,
): { address: string; secrets: string[] } | undefined {
  const kept = declaredIn === undefined ? { address, secret } : webhooks.declared.get(name);
  if (kept?.address === undefined) return undefined;
  const old = oldSecretUntil > clock.now() ? [oldSecret] : [];
  return { address: kept.address, secrets: [kept.secret, ...old].filter((one) => one !== undefined) };
}

/** The hash with which a game can choose the webhook. Unknown for a webhook that no game can choose. */
export function hashOf({ address, addressHash: kept }: Webhook): string | undefined {
  return address === undefined ? kept : addressHash(address);
}

/** The same for the address that a game sent; `undefined` if it is invalid. It is compared, and never called. */
export function callerHash(text: string | undefined): string | undefined {
  return text === undefined || !URL.canParse(text) ? undefined : addressHash(new URL(text).href);
}

export function addressHash(address: string): string {
  return crypto().hash('sha256', address);
}

type Target = NonNullable<ReturnType<typeof targetOf>>;

/** Sends an event for programs, signed. Rejects only if `signal` is aborted. */
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

/** Sends a message to Discord, with the request to confirm that it was stored. Rejects only if `signal` is aborted. */
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
