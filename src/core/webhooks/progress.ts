import { type Actor, type DomainEvent, eventsSkipped, type Skipped, webhookDisabled } from '../events.ts';
import { isAlarm, type WebhookEventType } from './event-types.ts';
import { deadAfterMs, deadAfterTries, maxTries, nextTryAt, triesInPlace } from './schedule.ts';
import type { Delivery, Webhook } from './webhook.ts';

/**
 * A target's response to a request. `refused`: probably only this event · `busy`: it asks for a later retry, which is
 * not a failure · `gone`: it will never accept anything again.
 */
export type Outcome =
  | { kind: 'delivered'; status: number; restMs?: number | undefined }
  | { kind: 'failed' | 'refused'; status?: number; error: string; retryAfterMs?: number | undefined }
  | { kind: 'busy'; status: number; error: string; retryAfterMs: number; isGlobal: boolean }
  | { kind: 'gone'; status: number; error: string };

/** The events of one request. */
export interface Attempt {
  webhook: Webhook;
  deliveries: readonly Delivery[];
  events: ReadonlyArray<{ sequence: number; type: WebhookEventType }>;
  outcome: Outcome;
  now: number;
  /** 0 to 1. */
  random: number;
}

interface Judged {
  webhook: { [Field in keyof Webhook]?: Webhook[Field] | undefined };
  put: Delivery[];
  hurriedAt?: number | undefined;
  events: DomainEvent[];
}

/** The effect of a request on the webhook and on its deliveries. */
export function progressOf(attempt: Attempt): Judged {
  const { outcome, now, webhook } = attempt;
  switch (outcome.kind) {
    case 'delivered':
      return delivered(attempt, outcome);
    case 'busy':
      return { webhook: { heldUntil: now + outcome.retryAfterMs }, put: [], events: [] };
    case 'gone': {
      const event = webhookDisabled(webhook, outcome.error, { by: 'daemon', at: now });
      return {
        webhook: { ...disabled(outcome.error), failingSince: webhook.failingSince ?? now },
        put: [],
        events: [event],
      };
    }
    case 'failed':
    case 'refused':
      return webhook.kind === 'discord' ? failedMessage(attempt, outcome) : failedEvent(attempt, outcome);
  }
}

/** A failing target that responds again gets its waiting events at once. */
function delivered(attempt: Attempt, { status, restMs }: Outcome & { kind: 'delivered' }): Judged {
  const { webhook, now } = attempt;
  return {
    webhook: {
      ...{ lastOkAt: now, failingSince: undefined, failedTries: 0, lastError: undefined },
      heldUntil: restMs === undefined ? undefined : now + restMs,
      ...passed(attempt),
    },
    put: ended(attempt, 'delivered', { status }),
    hurriedAt: webhook.failingSince === undefined ? undefined : now,
    events: [],
  };
}

type Failure = Outcome & { kind: 'failed' | 'refused' };

/** Discord gets many events in one message, so they wait together, behind the cursor. */
function failedMessage(attempt: Attempt, { kind, status, error, retryAfterMs }: Failure): Judged {
  const { webhook, now, random } = attempt;
  if (kind === 'refused') {
    const put = ended(attempt, 'failed', { error, ...(status !== undefined && { status }) });
    return { webhook: { lastError: error, ...passed(attempt) }, put, events: [] };
  }
  const failedTries = webhook.failedTries + 1;
  const heldUntil = nextTryAt({ failures: failedTries, now, random, retryAfterMs });
  const failing = { failingSince: webhook.failingSince ?? now, failedTries, lastError: error, heldUntil };
  return withDeath(attempt, { webhook: failing, put: [], events: [] });
}

/**
 * The target of a single event. Its first tries delay later events. After those it waits separately, so that an event
 * that the target can't accept does not stop the others. A dead target gets no requests at all in the meantime.
 */
function failedEvent(attempt: Attempt, failure: Failure): Judged {
  const { webhook, now, random } = attempt;
  const { kind, error, retryAfterMs } = failure;
  const [before] = attempt.deliveries;
  const tries = (before?.state === 'waiting' ? before.tries : 0) + 1;
  const isInPlace = tries <= triesInPlace;
  const isFailing = isInPlace || webhook.failingSince !== undefined;
  const failedTries = webhook.failedTries + (isFailing ? 1 : 0);
  const isOnlyThis = failedTries <= tries; // every other event was delivered
  const isOver = (kind === 'refused' && tries >= triesInPlace && isOnlyThis) || (tries >= maxTries && !isFailing);
  const waits = nextTryAt({ failures: tries, now, random, retryAfterMs });
  const holds = tries < triesInPlace ? nextTryAt({ failures: failedTries, now, random, retryAfterMs }) : undefined;
  const asked = retryAfterMs === undefined ? undefined : nextTryAt({ failures: 0, now, random, retryAfterMs });
  const progress: Judged = {
    webhook: {
      ...{ failedTries, lastError: error },
      ...(isFailing && { failingSince: webhook.failingSince ?? now }),
      ...(isInPlace && { heldUntil: holds ?? asked }),
      ...(tries >= triesInPlace && passed(attempt)),
    },
    put: attempt.events.map((event) => ({
      ...deliveryOf(attempt, event),
      ...(failure.status !== undefined && { status: failure.status }),
      ...{ error, tries },
      ...(isOver ? { state: 'failed' } : { state: 'waiting', nextTryAt: holds ?? waits }),
    })),
    events: [],
  };
  return withDeath(attempt, progress);
}

/** Disables a target that has been dead for days. Its waiting events stay. */
function withDeath({ webhook, now }: Attempt, progress: Judged): Judged {
  const { failingSince = now, failedTries = 0 } = progress.webhook;
  if (now - failingSince < deadAfterMs || failedTries < deadAfterTries) return progress;
  const why = `nothing was taken for 5 days: ${progress.webhook.lastError}`;
  const event = webhookDisabled(webhook, why, { by: 'daemon', at: now });
  return { ...progress, webhook: { ...progress.webhook, ...disabled(why) }, events: [event] };
}

function disabled(why: string) {
  return { state: 'disabled', why, lastError: why, heldUntil: undefined } as const;
}

/** Skipped events, and the cursors after them. */
export type LeftOut = Pick<Webhook, 'cursor' | 'alarmCursor'> & Skipped;

/** Continues after these events, and notifies the webhook. Changes nothing if its cursors are already there. */
export function leftOut(
  webhook: Webhook,
  { cursor, alarmCursor, ...range }: LeftOut,
  actor: Actor,
): Pick<Judged, 'put' | 'events'> & { webhook: Partial<Webhook> } {
  if (cursor <= webhook.cursor && alarmCursor <= webhook.alarmCursor) return { webhook: {}, put: [], events: [] };
  const moved = {
    cursor: Math.max(cursor, webhook.cursor),
    alarmCursor: Math.max(alarmCursor, webhook.alarmCursor),
  };
  return { webhook: moved, put: [], events: [eventsSkipped(webhook, range, actor)] };
}

/** The cursors after these events. */
function passed({ webhook, events }: Attempt): Pick<Webhook, 'cursor' | 'alarmCursor'> {
  const furthest = (of: typeof events, from: number) => Math.max(from, ...of.map(({ sequence }) => sequence));
  const alarms = events.filter(({ type }) => isAlarm(type));
  const others = events.filter((event) => !alarms.includes(event));
  return { cursor: furthest(others, webhook.cursor), alarmCursor: furthest(alarms, webhook.alarmCursor) };
}

function ended(
  attempt: Attempt,
  state: 'delivered' | 'failed',
  answer: Pick<Delivery, 'status' | 'error'>,
): Delivery[] {
  return attempt.events.map((event) => {
    const { tries, ...delivery } = deliveryOf(attempt, event);
    return { ...delivery, ...answer, state, tries: tries + 1 };
  });
}

/** The delivery of an event before this try, without the previous response. */
function deliveryOf({ webhook, deliveries, now }: Attempt, { sequence, type }: Attempt['events'][number]): Delivery {
  const before = deliveries.find((delivery) => delivery.sequence === sequence);
  const { tries, firstAt } = before?.state === 'waiting' ? before : { tries: 0, firstAt: now };
  return { webhookId: webhook.id, sequence, type, state: 'waiting', tries, firstAt, lastAt: now };
}
