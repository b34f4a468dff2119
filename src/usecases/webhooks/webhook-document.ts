import { isoOrNull, isoTime } from '../../base/time.ts';
import type { Delivery } from '../../core/webhooks/webhook.ts';
import type { TestOutcome } from './send.ts';
import type { WebhookView } from './view-webhooks.ts';

/** Omits the webhook's address and secret. */
export function webhookDocument({ webhook, backlog, oldestAt }: WebhookView) {
  return {
    id: webhook.id,
    name: webhook.name,
    kind: webhook.kind,
    target: webhook.shown,
    events: webhook.events,
    state: stateOf(webhook),
    why: webhook.why ?? null,
    mention: webhook.mention ?? null,
    forGames: webhook.isForGames ?? false,
    backlog,
    oldestWaiting: isoOrNull(oldestAt),
    lastSuccess: isoOrNull(webhook.lastOkAt),
    failingSince: isoOrNull(webhook.failingSince),
    failedTries: webhook.failedTries,
    lastError: webhook.lastError ?? null,
    nextTry: isoOrNull(webhook.heldUntil),
    createdAt: isoTime(webhook.createdAt),
    declaredIn: webhook.declaredIn ?? null,
  };
}

/** `failing`: the webhook is enabled, but the last attempt failed. */
function stateOf({ state, failingSince }: WebhookView['webhook']): 'enabled' | 'failing' | 'disabled' {
  return state === 'enabled' && failingSince !== undefined ? 'failing' : state;
}

export function deliveryDocument(
  { sequence, type, state, tries, status, error, ...times }: Delivery,
  workspaceId: string,
) {
  return {
    id: `evt_${workspaceId}_${sequence}`,
    sequence,
    type,
    state,
    tries,
    status: status ?? null,
    error: error ?? null,
    nextTry: isoOrNull(times.nextTryAt),
    firstTry: isoTime(times.firstAt),
    lastTry: isoTime(times.lastAt),
  };
}

export function webhookTestDocument({ webhook, outcome, ms }: TestOutcome) {
  const status = 'status' in outcome ? (outcome.status ?? null) : null;
  const error = 'error' in outcome ? outcome.error : null;
  return { webhook: webhook.name, delivered: outcome.kind === 'delivered', status, ms, error };
}

export function redeliveryDocument(webhook: string, events: readonly unknown[], { dryRun }: { dryRun: boolean }) {
  return { webhook, events: events.length, dryRun };
}
