import type { OutboundProxy } from '../base/outbound-proxy.ts';
import type { NodeDeclarations, StillDeclared } from '../core/declarations.ts';
import type { DomainEvent, Verdict } from '../core/events.ts';
import type { OutboxEvent } from '../core/webhooks/event-types.ts';
import type { Delivery, Webhook } from '../core/webhooks/webhook.ts';
import type { DeclaredEdit, NewWebhookDeclaration, WebhookFacts } from '../core/webhooks/webhook-changes.ts';

/** The new and changed webhooks, and the ids of removed ones. */
export interface WebhookEdit {
  put: readonly Webhook[];
  remove: readonly string[];
}

export interface Progress {
  /** The changed fields; `undefined` removes a field. */
  webhook: { [Field in keyof Webhook]?: Webhook[Field] | undefined };
  put: readonly Delivery[];
  /** If set, deliveries that are waiting for a retry become due at this time (epoch milliseconds) or earlier. */
  retriesDueAt?: number | undefined;
  events: readonly DomainEvent[];
}

export interface DeliveryFilter {
  webhookId: string;
  state?: Delivery['state'] | undefined;
  /** Matches deliveries that are waiting and due by this time (epoch milliseconds). */
  dueAt?: number | undefined;
  sequences?: readonly number[] | undefined;
  oldestFirst?: boolean;
  limit: number;
}

/** A page of audit events, each with the change that it reports, if any. */
export interface OutboxPage {
  events: OutboxEvent[];
  /** The number of the last scanned event; the next page begins after it. */
  upTo: number;
}

/**
 * The webhooks and their delivery progress. The audit log is their outbox: an event gets the next number in the
 * transaction that stores it, so a reader's cursor never skips an event. `Store` describes how a `judge` is used.
 */
export interface WebhookStore {
  /** Returns all webhooks, sorted by name. */
  listWebhooks(): Promise<Webhook[]>;
  /** Removing a webhook also removes its deliveries. */
  updateWebhooks(judge: (webhooks: Webhook[], newestEvent: number) => Verdict<WebhookEdit>): Promise<void>;
  /**
   * Stores this node's declarations, and updates the declared webhooks accordingly. If several daemons share the store,
   * a webhook remains as long as any live node declares it. Resolves with the webhooks that other nodes declare but
   * this one omits or declares differently.
   */
  declareWebhooks(judge: (facts: WebhookFacts) => Verdict<DeclaredEdit>): Promise<StillDeclared[]>;
  /**
   * Returns the declarations of this node and of other live nodes; `undefined` if only one daemon can use the store.
   */
  webhookDeclarations(): Promise<NodeDeclarations<NewWebhookDeclaration> | undefined>;
  /**
   * Stores the outcome of delivery attempts. `judge` receives the webhook and its deliveries of these events. Does
   * nothing if the webhook no longer exists.
   */
  recordProgress(
    tried: { webhookId: string; sequences: readonly number[] },
    judge: (facts: { webhook: Webhook; deliveries: Delivery[] }) => Progress,
  ): Promise<void>;
  /** Returns a webhook's deliveries, newest event first unless `oldestFirst` is set. */
  listDeliveries(filter: DeliveryFilter): Promise<Delivery[]>;
  /**
   * Removes deliveries that ended before `before` (epoch milliseconds), and all successful ones except the newest
   * `keep` per webhook.
   */
  trimDeliveries(step: { before: number; keep: number }): Promise<void>;
  /** Returns at most `limit` events with one of these actions after event `after`, oldest first. */
  eventsAfter(page: { after: number; actions: readonly string[]; limit: number }): Promise<OutboxPage>;
  /** Returns the events with these numbers, in order, and omits any that no longer exist. */
  findEvents(sequences: readonly number[]): Promise<OutboxEvent[]>;
}

export interface WebhookRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT';
  /** As sensitive as a password. */
  address: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Secrets to redact from the target's response, in addition to the address. */
  secrets?: readonly string[];
  timeoutMs: number;
  /** Networks that rankd is allowed to call even though they are not public. */
  allowPrivate: readonly string[];
  /** The configured proxy, which the request bypasses. Used only in error messages. */
  proxy?: OutboundProxy | undefined;
}

/** A target's response, or an error message that omits the address. */
export type TargetAnswer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

/**
 * `refusal` is the reason why `send` refuses to call this address, `refusedAddress` is the IP address that it names, and
 * `doubt` is the reason why the host name can't be resolved at the moment.
 */
export interface AddressVerdict {
  refusal?: string;
  refusedAddress?: string;
  doubt?: string;
}

/** Sends requests to webhook targets, but only to addresses that are public or allowed. */
export interface WebhookSender {
  /** Sends a request without following redirects. Rejects only if `signal` is aborted. */
  send(request: WebhookRequest, signal?: AbortSignal): Promise<TargetAnswer>;
  /** Checks an address by resolving its host name, without sending a request. */
  judgeAddress(target: Pick<WebhookRequest, 'address' | 'allowPrivate' | 'proxy'>): Promise<AddressVerdict>;
}
