import type { OutboundProxy } from '../base/outbound-proxy.ts';
import type { NodeDeclarations, StillDeclared } from '../core/declarations.ts';
import type { DomainEvent, Verdict } from '../core/events.ts';
import type { OutboxEvent } from '../core/webhooks/event-types.ts';
import type { Delivery, Webhook } from '../core/webhooks/webhook.ts';
import type { DeclaredEdit, NewWebhookDeclaration, WebhookFacts } from '../core/webhooks/webhook-changes.ts';

/** The changes to the webhooks: new or changed ones, and the ids of removed ones. */
export interface WebhookEdit {
  put: readonly Webhook[];
  remove: readonly string[];
}

/** The result of tries: the changes to the webhook and to its deliveries. */
export interface Progress {
  /** Fields of the webhook that change; `undefined` takes one away. */
  webhook: { [Field in keyof Webhook]?: Webhook[Field] | undefined };
  put: readonly Delivery[];
  /** If it is given, what waits and was tried before is due at this time (epoch milliseconds). */
  hurriedAt?: number | undefined;
  events: readonly DomainEvent[];
}

export interface DeliveryFilter {
  webhookId: string;
  state?: Delivery['state'] | undefined;
  /** Waiting, and due then (epoch milliseconds). */
  dueAt?: number | undefined;
  sequences?: readonly number[] | undefined;
  /** Oldest event first; without it, newest first. */
  oldestFirst?: boolean;
  limit: number;
}

/** A stretch of the audit, with the change that each event is about. */
export interface OutboxPage {
  events: OutboxEvent[];
  /** The number of the last event that was looked at: the next page begins after it. */
  upTo: number;
}

/**
 * The webhooks, and how far each has got. The audit is the outbox: an event gets the next number in the transaction in which it is
 * kept, so none ever appears before one that was read already.
 */
export interface WebhookStore {
  /** Ascending by name. */
  listWebhooks(): Promise<Webhook[]>;
  /**
   * Changes webhooks as `judge` says, with its events. What waits for a webhook goes with it. `judge` gets all of them, and the number
   * of the newest event; it is synchronous and pure, and may run more than once. Throws its refusal: then nothing is changed.
   */
  updateWebhooks(judge: (webhooks: Webhook[], newestEvent: number) => Verdict<WebhookEdit>): Promise<void>;
  /**
   * The same for what a configuration declares, and keeps what this node declares. Where several daemons share the store, a webhook holds
   * as long as the node of any handle declares it. Resolves with what others declare and this node does not, or otherwise.
   */
  declareWebhooks(judge: (facts: WebhookFacts) => Verdict<DeclaredEdit>): Promise<StillDeclared[]>;
  /** The declarations of this node and of other live nodes; `undefined` if only one daemon can use the store. */
  webhookDeclarations(): Promise<NodeDeclarations<NewWebhookDeclaration> | undefined>;
  /**
   * Keeps what came of a try. `judge` gets the webhook and its deliveries of these events, as they are kept; it is synchronous and
   * pure, and may run more than once. Nothing is done if there is no such webhook any more.
   */
  recordProgress(
    tried: { webhookId: string; sequences: readonly number[] },
    judge: (facts: { webhook: Webhook; deliveries: Delivery[] }) => Progress,
  ): Promise<void>;
  /** At most `limit` deliveries of a webhook, by the number of their events. */
  listDeliveries(filter: DeliveryFilter): Promise<Delivery[]>;
  /** Removes deliveries that ended before this time (epoch milliseconds), and of each webhook all that ended but the newest. */
  trimDeliveries(step: { before: number; keep: number }): Promise<void>;
  /** Events after a number with one of these actions, in order. */
  eventsAfter(page: { after: number; actions: readonly string[]; limit: number }): Promise<OutboxPage>;
  /** The events with these numbers that are still kept, in order. */
  findEvents(sequences: readonly number[]): Promise<OutboxEvent[]>;
}

/** One request to a target. */
export interface WebhookRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT';
  /** As good as a password. */
  address: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Secrets to cut out of the target's response, in addition to the address. */
  secrets?: readonly string[];
  timeoutMs: number;
  /** Networks that are not public, and may be called all the same. */
  allowPrivate: readonly string[];
  /** The proxy that the request does not go through, for the words of a failure. */
  proxy?: OutboundProxy | undefined;
}

/** A target's response, or the reason there was none, in words without an address. */
export type TargetAnswer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

/** `refusal`: why `send` would never call this address. `doubt`: why it would not do so now. */
export interface AddressVerdict {
  refusal?: string;
  doubt?: string;
}

/** Carries requests to the targets of webhooks: to the address that is given, to no other, and never to one that is not public. */
export interface WebhookSender {
  /** Never rejects, but for `signal`. A redirect is an answer like any other. */
  send(request: WebhookRequest, signal?: AbortSignal): Promise<TargetAnswer>;
  /** Looks the address up and sends nothing. Throws nothing. */
  judgeAddress(target: Pick<WebhookRequest, 'address' | 'allowPrivate' | 'proxy'>): Promise<AddressVerdict>;
}
