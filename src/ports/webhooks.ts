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
  /** Changed fields of the webhook; `undefined` removes one. */
  webhook: { [Field in keyof Webhook]?: Webhook[Field] | undefined };
  put: readonly Delivery[];
  /** If given, waiting deliveries that were tried before become due at this time (epoch milliseconds). */
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

/** A page of the audit, with the change that each event is about. */
export interface OutboxPage {
  events: OutboxEvent[];
  /** The number of the last scanned event: the next page begins after it. */
  upTo: number;
}

/**
 * The webhooks, and the progress of each. The audit is the outbox: an event gets the next number in the transaction that stores
 * it, so no event ever appears before one that was already read.
 */
export interface WebhookStore {
  /** Ascending by name. */
  listWebhooks(): Promise<Webhook[]>;
  /**
   * Changes webhooks as `judge` decides, with its events. A webhook is removed together with its deliveries. `judge` gets all webhooks, and the
   * number of the newest event; it is synchronous and pure, and may run more than once. Throws its refusal, with nothing changed.
   */
  updateWebhooks(judge: (webhooks: Webhook[], newestEvent: number) => Verdict<WebhookEdit>): Promise<void>;
  /**
   * The same for the webhooks of a configuration, and stores the declarations of this node. If several daemons share the store, a webhook stays
   * as long as the node of any handle declares it. Resolves with those that other nodes declare and this one does not, or declares differently.
   */
  declareWebhooks(judge: (facts: WebhookFacts) => Verdict<DeclaredEdit>): Promise<StillDeclared[]>;
  /** The declarations of this node and of other live nodes; `undefined` if only one daemon can use the store. */
  webhookDeclarations(): Promise<NodeDeclarations<NewWebhookDeclaration> | undefined>;
  /**
   * Stores the outcome of a try. `judge` gets the webhook and its deliveries of these events, as stored; it is synchronous and
   * pure, and may run more than once. Does nothing if the webhook no longer exists.
   */
  recordProgress(
    tried: { webhookId: string; sequences: readonly number[] },
    judge: (facts: { webhook: Webhook; deliveries: Delivery[] }) => Progress,
  ): Promise<void>;
  /** At most `limit` deliveries of a webhook, by the number of their events. */
  listDeliveries(filter: DeliveryFilter): Promise<Delivery[]>;
  /** Removes deliveries that ended before this time (epoch milliseconds), and all but the newest `keep` of those that ended, for each webhook. */
  trimDeliveries(step: { before: number; keep: number }): Promise<void>;
  /** Events after a number with one of these actions, in order. */
  eventsAfter(page: { after: number; actions: readonly string[]; limit: number }): Promise<OutboxPage>;
  /** The events with these numbers that still exist, in order. */
  findEvents(sequences: readonly number[]): Promise<OutboxEvent[]>;
}

/** One request to a target. */
export interface WebhookRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT';
  /** As sensitive as a password. */
  address: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Secrets to cut out of the target's response, in addition to the address. */
  secrets?: readonly string[];
  timeoutMs: number;
  /** Networks that are not public, but may be called. */
  allowPrivate: readonly string[];
  /** A configured proxy that the request bypasses, for the error message. */
  proxy?: OutboundProxy | undefined;
}

/** A target's response, or the reason there was none, in words without an address. */
export type TargetAnswer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

/** `refusal`: the reason `send` would never call this address. `doubt`: the reason it would not at present. */
export interface AddressVerdict {
  refusal?: string;
  doubt?: string;
}

/** Sends requests to the targets of webhooks: only to the given address, and only if that is public or allowed. */
export interface WebhookSender {
  /** Rejects only if `signal` is aborted. A redirect is an answer like any other. */
  send(request: WebhookRequest, signal?: AbortSignal): Promise<TargetAnswer>;
  /** Resolves the name of the address and sends nothing. Never throws. */
  judgeAddress(target: Pick<WebhookRequest, 'address' | 'allowPrivate' | 'proxy'>): Promise<AddressVerdict>;
}
