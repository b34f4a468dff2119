import { RankdError } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { counted } from '../../base/text.ts';
import type { WebhookEventType } from './event-types.ts';

/** `discord`: messages for people · `standard`: signed events for programs (Standard Webhooks 1.0.0). */
export type WebhookKind = 'standard' | 'discord';

export interface Webhook {
  id: string;
  name: string;
  kind: WebhookKind;
  /** The part of the address that is safe to show, e.g. `https://hooks.example/***`. */
  shown: string;
  /**
   * As sensitive as a password. Absent if the configuration declares the webhook, because the address is then in a
   * file.
   */
  address?: string;
  /** The SHA-256 of a declared webhook's address, by which a game can select it; see `isForGames`. */
  addressHash?: string;
  /** The secret that signs deliveries, `whsec_…`. Absent for Discord, and if the secret is in a file. */
  secret?: string;
  /** The secret from before the last rotation, which also signs deliveries until `oldSecretUntil`. */
  oldSecret?: string;
  oldSecretUntil?: number;
  /** Names of events or event groups. */
  events: string[];
  /** The Discord role that alarms mention. */
  mention?: string;
  /** True if games are allowed to select the webhook by its address. */
  isForGames?: boolean;
  state: 'enabled' | 'disabled';
  why?: string;
  /** The number of the last handled audit event that is not an alarm. */
  cursor: number;
  /** The number of the last handled alarm. Alarms have a separate cursor, because they overtake other events. */
  alarmCursor: number;
  createdAt: number;
  /**
   * Set if the configuration declares the webhook, e.g. `rankd.yaml:31`. An operator can then enable the webhook, but
   * not edit it.
   */
  declaredIn?: string;
  /** The time of the target's first failure since its last success; absent while it accepts events. */
  failingSince?: number;
  /**
   * The number of failed attempts since the last success. While the target accepts events, retries of an event that
   * others have overtaken do not count.
   */
  failedTries: number;
  lastOkAt?: number;
  lastError?: string;
  /** Until this time, rankd sends the target nothing but test events. */
  heldUntil?: number;
}

export interface Delivery {
  webhookId: string;
  /** The event's number in the audit log. */
  sequence: number;
  type: WebhookEventType;
  /** `waiting`: rankd retries it at `nextTryAt`. */
  state: 'waiting' | 'delivered' | 'failed';
  tries: number;
  /** The HTTP status of the last response; absent if there was no response. */
  status?: number;
  error?: string;
  nextTryAt?: number;
  firstAt: number;
  lastAt: number;
}

export const maxWebhooks = 20;

/** True if the name is safe in a shell, a log line and a metric. */
export function isWebhookName(text: string): boolean {
  return /^[a-z0-9-]{1,40}$/.test(text);
}

/**
 * Returns an event's id, which is the same in every attempt. It must not contain a dot, because Standard Webhooks signs
 * `id.timestamp.body`.
 */
export function eventId(workspaceId: string, sequence: number): string {
  return `evt_${workspaceId}_${sequence}`;
}

/** Parses an event id or a plain event number; returns `undefined` for anything else. */
export function sequenceIn(text: string): number | undefined {
  const digits = /^(?:evt_.*_)?(\d{1,15})$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function waitingText(backlog: number): string {
  return `${counted(backlog, 'event')} ${backlog === 1 ? 'waits' : 'wait'}`;
}

/** The prefix of secrets in Standard Webhooks 1.0.0: https://github.com/standard-webhooks/standard-webhooks */
const prefix = 'whsec_';

export function newWebhookSecret(): string {
  return prefix + crypto().randomBytes(24).toString('base64');
}

export function isWebhookSecret(text: string): boolean {
  const bytes = Buffer.from(text.slice(prefix.length), 'base64');
  return (
    text.startsWith(prefix) && bytes.length >= 24 && bytes.length <= 64 && prefix + bytes.toString('base64') === text
  );
}

/** Returns headers that let a receiver verify that rankd sent this body at this time. Each secret adds a signature. */
export function signedHeaders(
  { id, body, atMs }: { id: string; body: string; atMs: number },
  secrets: readonly string[],
): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64');
    return `v1,${crypto().createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}

export interface WebhookAddress {
  /** As sensitive as a password. */
  address: string;
  kind: WebhookKind;
  /** The part that is safe to show. */
  shown: string;
}

/**
 * Parses an address from an operator and derives its kind, unless `kind` is given. The refusal never contains the
 * address.
 */
export function readAddress(text: string, kind?: WebhookKind): WebhookAddress | { refusal: RankdError } {
  const address = text.trim();
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return refused(
      'This is not a webhook address: it must begin with https://.',
      'copy the whole address of the webhook',
    );
  }
  const isDiscord = discordHosts.has(url.host);
  if (url.username !== '' || url.password !== '') {
    return refused(
      'The address contains a user name or a password.',
      `use an address without them${isDiscord ? '' : '; rankd signs its requests instead'}`,
    );
  }
  if (/^discord\.gg$/.test(url.host) || (isDiscord && url.pathname.startsWith('/invite'))) {
    return refused('This is an invitation to a Discord server, not a webhook.', whereInDiscord);
  }
  if (/(^|\.)slack\.com$/.test(url.host))
    return refused('Slack needs a message format that rankd does not send.', standard);
  if (/(^|\.)guilded\.gg$/.test(url.host))
    return refused('Guilded needs a message format that rankd does not send.', standard);
  const path = discordPath.exec(url.pathname);
  if ((isDiscord || kind === 'discord') && path === null) {
    return refused(
      isDiscord ? 'This is a Discord address, but not a webhook.' : 'This is not the address of a Discord webhook.',
      whereInDiscord,
    );
  }
  if (isDiscord && url.protocol === 'http:')
    return refused('The address begins with http://; Discord needs https://.', whereInDiscord);
  const chosen = kind ?? (isDiscord ? 'discord' : 'standard');
  const id = path?.[1] ?? '';
  const shown =
    chosen === 'discord' ? `${url.host}/api/webhooks/${id.slice(0, 4)}…${id.slice(-3)}/***` : `${url.origin}/***`;
  return { address: url.href, kind: chosen, shown };
}

const discordHosts = new Set(['discord.com', 'discordapp.com', 'ptb.discord.com', 'canary.discord.com']);
const discordPath = /^\/api(?:\/v\d+)?\/webhooks\/(\d{5,25})\/[\w-]{10,200}\/?$/;
const whereInDiscord = 'in Discord: channel settings, Integrations, Webhooks, Copy Webhook URL';
const standard = 'use a Discord webhook, or your own program that accepts Standard Webhooks';

function refused(message: string, hint: string): { refusal: RankdError } {
  return { refusal: new RankdError('usage', message, { hint }) };
}
