import type { OutboundProxy } from '../base/outbound-proxy.ts';
import type { NodeDeclarations, StillDeclared } from '../core/declarations.ts';
import type { DomainEvent, Verdict } from '../core/events.ts';
import type { OutboxEvent } from '../core/webhooks/event-types.ts';
import type { Delivery, Webhook } from '../core/webhooks/webhook.ts';
import type { DeclaredEdit, NewWebhookDeclaration, WebhookFacts } from '../core/webhooks/webhook-changes.ts';

/** An edit to the webhooks: the new and changed ones, and the ids of removed ones. */
export interface WebhookEdit {
  put: readonly Webhook[];
  remove: readonly string[];
}

/** The changes to a webhook and to its deliveries after delivery attempts. */
export interface Progress {
  /** Changed fields of the webhook; `undefined` removes one. */
  webhook: { [Field in keyof Webhook]?: Webhook[Field] | undefined };
  put: readonly Delivery[];
  /** If set, waiting deliveries with a failed attempt become due at this time (epoch milliseconds) at the latest. */
  hurriedAt?: number | undefined;
  events: readonly DomainEvent[];
}

export interface DeliveryFilter {
  webhookId: string;
  state?: Delivery['state'] | undefined;
  /** Only waiting deliveries that are due at this time (epoch milliseconds). */
  dueAt?: number | undefined;
  sequences?: readonly number[] | undefined;
  /** True for oldest event first; the default is newest first. */
  oldestFirst?: boolean;
  limit: number;
}

/** A page of audit events, each with the change that it reports. */
export interface OutboxPage {
  events: OutboxEvent[];
  /** The number of the last scanned event; the next page begins after it. */
  upTo: number;
}

/**
 * The webhooks and their delivery progress. The audit log is their outbox: each event gets the next number in the
 * transaction that stores it, so a reader's cursor never skips an event.
 */
export interface WebhookStore {
  /** Returns all webhooks, ascending by name. */
  listWebhooks(): Promise<Webhook[]>;
  /**
   * Changes webhooks and stores the events as `judge` decides. Removing a webhook also removes its
   * deliveries. `judge` is synchronous and pure, and may run more than once. If it refuses, nothing changes, and the
   * refusal is thrown.
   */
  updateWebhooks(judge: (webhooks: Webhook[], newestEvent: number) => Verdict<WebhookEdit>): Promise<void>;
  /**
   * Changes the webhooks that the configuration declares, in the same way as `updateWebhooks`, and stores this node's
   * declarations. If several daemons share the store, a webhook stays as long as any live node declares it. Resolves
   * with the webhooks that other nodes declare and that this node omits or declares differently.
   */
  declareWebhooks(judge: (facts: WebhookFacts) => Verdict<DeclaredEdit>): Promise<StillDeclared[]>;
  /**
   * Returns the declarations of this node and of other live nodes; `undefined` if only one daemon can use the store.
   */
  webhookDeclarations(): Promise<NodeDeclarations<NewWebhookDeclaration> | undefined>;
  /**
   * Stores the outcome of delivery attempts as `judge` decides, given the webhook and its deliveries for these events.
   * `judge` is synchronous and pure, and may run more than once. Does nothing if the webhook no longer exists.
   */
  recordProgress(
    tried: { webhookId: string; sequences: readonly number[] },
    judge: (facts: { webhook: Webhook; deliveries: Delivery[] }) => Progress,
  ): Promise<void>;
  /** Returns at most `limit` deliveries of a webhook, ordered by event. */
  listDeliveries(filter: DeliveryFilter): Promise<Delivery[]>;
  /**
   * Removes deliveries that ended before `before` (epoch milliseconds), and all successful ones except the newest
   * `keep` of each webhook.
   */
  trimDeliveries(step: { before: number; keep: number }): Promise<void>;
  /** Returns at most `limit` events after the event `after` that have one of these actions, in order. */
  eventsAfter(page: { after: number; actions: readonly string[]; limit: number }): Promise<OutboxPage>;
  /** Returns the events with these numbers, in order, without those that no longer exist. */
  findEvents(sequences: readonly number[]): Promise<OutboxEvent[]>;
}

export interface WebhookRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT';
  /** As sensitive as a password. */
  address: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Secrets to cut out of the target's response, in addition to the address. */
  secrets?: readonly string[];
  timeoutMs: number;
  /** Networks that may be called although they are not public. */
  allowPrivate: readonly string[];
  /** The configured proxy that the request bypasses, for error messages. */
  proxy?: OutboundProxy | undefined;
}

/** A target's response, or an error without the address. */
export type TargetAnswer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

/** `refusal`: the reason that `send` never calls this address. `doubt`: the reason that it currently can't call it. */
export interface AddressVerdict {
  refusal?: string;
  doubt?: string;
}

/** Sends requests to webhook targets, but only to addresses that are public or allowed. */
export interface WebhookSender {
  /** Sends a request without following redirects. Rejects only if `signal` is aborted. */
  send(request: WebhookRequest, signal?: AbortSignal): Promise<TargetAnswer>;
  /** Judges an address by resolving its host name, without sending a request. */
  judgeAddress(target: Pick<WebhookRequest, 'address' | 'allowPrivate' | 'proxy'>): Promise<AddressVerdict>;
}
