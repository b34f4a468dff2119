import { shorten } from '../../base/text.ts';
import { retryAfterMs } from '../../base/time.ts';
import { type Actor, type DomainEvent, eventsSkipped, type Skipped, webhookDisabled } from '../events.ts';
import { isAlarm, type WebhookEventType } from './event-types.ts';
import type { Delivery, Webhook, WebhookKind } from './webhook.ts';

/**
 * The outcome of a request to a target. `refused`: the target rejects this event · `busy`: it requests a later retry,
 * which does not count as a failure · `gone`: it will never accept an event again. `restMs`: the pause that it requires
 * before the next request.
 */
export type Outcome =
  | { kind: 'delivered'; status: number; restMs?: number | undefined }
  | { kind: 'failed' | 'refused'; status?: number; error: string; retryAfterMs?: number | undefined }
  | { kind: 'busy'; status: number; error: string; retryAfterMs: number; isGlobal: boolean }
  | { kind: 'gone'; status: number; error: string };

interface Attempt {
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
  retriesDueAt?: number | undefined;
  events: DomainEvent[];
}

/** Returns a request's effect on the webhook and its deliveries. */
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

/** Returns the effect of a delivery. If the target had been failing, rankd sends its waiting events at once. */
function delivered(attempt: Attempt, { status, restMs }: Outcome & { kind: 'delivered' }): Judged {
  const { webhook, now } = attempt;
  return {
    webhook: {
      ...{ lastOkAt: now, failingSince: undefined, failedTries: 0, lastError: undefined },
      heldUntil: restMs === undefined ? undefined : now + restMs,
      ...cursorsAfter(attempt),
    },
    put: ended(attempt, 'delivered', { status }),
    retriesDueAt: webhook.failingSince === undefined ? undefined : now,
    events: [],
  };
}

type Failure = Outcome & { kind: 'failed' | 'refused' };

/**
 * Returns the effect of a failed Discord message. The cursor does not move past the message's events, so that the retry
 * sends them again, together with later ones. If Discord refuses the message, its events are recorded as failed.
 */
function failedMessage(attempt: Attempt, { kind, status, error, retryAfterMs }: Failure): Judged {
  const { webhook, now, random } = attempt;
  if (kind === 'refused') {
    const put = ended(attempt, 'failed', { error, ...(status !== undefined && { status }) });
    return { webhook: { lastError: error, ...cursorsAfter(attempt) }, put, events: [] };
  }
  const failedTries = webhook.failedTries + 1;
  const heldUntil = nextTryAt({ failures: failedTries, now, random, retryAfterMs });
  const failing = { failingSince: webhook.failingSince ?? now, failedTries, lastError: error, heldUntil };
  return disabledIfDead(attempt, { webhook: failing, put: [], events: [] });
}

/**
 * Returns the effect of a failed attempt to send an event. The first `triesInPlace` attempts delay later events; then
 * the cursor moves past the event, so that one that the target can't accept does not block the others.
 */
function failedEvent(attempt: Attempt, failure: Failure): Judged {
  const { webhook, now, random } = attempt;
  const { kind, error, retryAfterMs } = failure;
  const [before] = attempt.deliveries;
  const tries = (before?.state === 'waiting' ? before.tries : 0) + 1;
  const isInPlace = tries <= triesInPlace;
  const isFailing = isInPlace || webhook.failingSince !== undefined;
  const failedTries = webhook.failedTries + (isFailing ? 1 : 0);
  const isOnlyFailure = failedTries <= tries; // every other event was delivered
  const isOver = (kind === 'refused' && tries >= triesInPlace && isOnlyFailure) || (tries >= maxTries && !isFailing);
  const waits = nextTryAt({ failures: tries, now, random, retryAfterMs });
  const holds = tries < triesInPlace ? nextTryAt({ failures: failedTries, now, random, retryAfterMs }) : undefined;
  const requested = retryAfterMs === undefined ? undefined : nextTryAt({ failures: 0, now, random, retryAfterMs });
  const progress: Judged = {
    webhook: {
      ...{ failedTries, lastError: error },
      ...(isFailing && { failingSince: webhook.failingSince ?? now }),
      ...(isInPlace && { heldUntil: holds ?? requested }),
      ...(tries >= triesInPlace && cursorsAfter(attempt)),
    },
    put: attempt.events.map((event) => ({
      ...deliveryOf(attempt, event),
      ...(failure.status !== undefined && { status: failure.status }),
      ...{ error, tries },
      ...(isOver ? { state: 'failed' } : { state: 'waiting', nextTryAt: holds ?? waits }),
    })),
    events: [],
  };
  return disabledIfDead(attempt, progress);
}

/**
 * Returns `progress`, and disables the webhook if its target has been failing for days. Its waiting events are
 * retained.
 */
function disabledIfDead({ webhook, now }: Attempt, progress: Judged): Judged {
  const { failingSince = now, failedTries = 0 } = progress.webhook;
  if (now - failingSince < deadAfterMs || failedTries < deadAfterTries) return progress;
  const why = `the target accepted no event for 5 days: ${progress.webhook.lastError}`;
  const event = webhookDisabled(webhook, why, { by: 'daemon', at: now });
  return { ...progress, webhook: { ...progress.webhook, ...disabled(why) }, events: [event] };
}

function disabled(why: string) {
  return { state: 'disabled', why, lastError: why, heldUntil: undefined } as const;
}

export type LeftOut = Pick<Webhook, 'cursor' | 'alarmCursor'> & Skipped;

/**
 * Returns the update that moves the webhook's cursors past the skipped events, and an event that reports the skip. The
 * update is empty if the cursors are already past them.
 */
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

function cursorsAfter({ webhook, events }: Attempt): Pick<Webhook, 'cursor' | 'alarmCursor'> {
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

/**
 * Returns an event's delivery record without the result of this attempt. The count of attempts continues if the event
 * is waiting; otherwise, it starts at 0.
 */
function deliveryOf({ webhook, deliveries, now }: Attempt, { sequence, type }: Attempt['events'][number]): Delivery {
  const before = deliveries.find((delivery) => delivery.sequence === sequence);
  const { tries, firstAt } = before?.state === 'waiting' ? before : { tries: 0, firstAt: now };
  return { webhookId: webhook.id, sequence, type, state: 'waiting', tries, firstAt, lastAt: now };
}

const minute = 60_000;
const hour = 60 * minute;

/** The wait after each failed attempt. The last wait repeats. */
const waitsMs = [
  5_000,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
] as const;

/** The number of failed attempts to send an event after which later events overtake it. */
export const triesInPlace = 3;

/** The maximum number of attempts for an event if the target accepts other events. */
const maxTries = waitsMs.length + 1;

/** A webhook is disabled once its target has failed for at least `deadAfterMs` and `deadAfterTries` attempts. */
const deadAfterMs = 5 * 24 * hour;
const deadAfterTries = 10;

/** Events older than this are no longer delivered. */
export const maxAgeMs = 7 * 24 * hour;

/** The maximum wait that a target can request. */
const maxRetryAfterMs = 24 * hour;

/**
 * Returns the time of the next attempt after the given number of failures. `random` (0 to 1) adds jitter, so that
 * targets that fail together are not retried at the same moment.
 */
function nextTryAt({
  failures,
  now,
  random,
  retryAfterMs = 0,
}: {
  failures: number;
  now: number;
  random: number;
  retryAfterMs?: number | undefined;
}): number {
  const waitMs = waitsMs[Math.min(failures, waitsMs.length) - 1] ?? 0;
  return now + Math.max(Math.round(waitMs * (0.8 + 0.4 * random)), Math.min(retryAfterMs, maxRetryAfterMs));
}

/** The time during which rankd collects a channel's events (`ms`), and the number of consecutive digests before it. */
interface BatchWindow {
  ms: number;
  digests: number;
}

/** The maximum number of events in a message that shows each event as an embed. More events become a digest. */
export const maxEmbeds = 5;

/**
 * Returns how long rankd collects events before it sends a message: 1 s if it sent none in the last 10 s, and otherwise
 * 10 s, or a minute during a series of digests. The longer times keep a list of changes from flooding the channel.
 * `last`: the age of the last message, and the number of consecutive digests up to and including it.
 */
export function batchWindowAfter(last: { agoMs: number; digests: number } | undefined): BatchWindow {
  if (last === undefined || last.agoMs >= 10_000) return { ms: 1_000, digests: 0 };
  return { ms: isBurst(last) ? 60_000 : 10_000, digests: last.digests };
}

export function isBurst({ digests }: Pick<BatchWindow, 'digests'>): boolean {
  return digests >= 2;
}

type Answer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

export function outcomeOf(kind: WebhookKind, answer: Answer, now: number): Outcome {
  if (!answer.isAnswered) return { kind: 'failed', error: answer.error };
  return kind === 'discord' ? discordOutcome(answer, now) : standardOutcome(answer, now);
}

type Answered = Answer & { isAnswered: true };

function standardOutcome(answer: Answered, now: number): Outcome {
  const { status } = answer;
  if (isSuccess(status)) return { kind: 'delivered', status };
  const error = inWords(answer);
  if (status === 410) return { kind: 'gone', status, error: 'the target answered 410: it accepts no more events' };
  if ([400, 413, 422].includes(status)) return { kind: 'refused', status, error };
  const requested = [429, 503].includes(status) ? retryAfterMs(answer.header('retry-after'), now) : undefined;
  return { kind: 'failed', status, error, retryAfterMs: requested };
}

/**
 * Interprets Discord's response, including its rate limits: https://discord.com/developers/docs/topics/rate-limits.
 * rankd must not call a deleted webhook again, because Discord blocks IP addresses that cause too many errors.
 */
function discordOutcome(answer: Answered, now: number): Outcome {
  const { status } = answer;
  if (isSuccess(status)) {
    const resetMs = Number(answer.header('x-ratelimit-reset-after')) * 1000;
    const isUsedUp = answer.header('x-ratelimit-remaining') === '0' && resetMs > 0;
    return { kind: 'delivered', status, restMs: isUsedUp ? resetMs : undefined };
  }
  const error = inWords(answer);
  if (status === 429) {
    const body = jsonIn(answer.text);
    const bodyMs = typeof body['retry_after'] === 'number' ? body['retry_after'] * 1000 : undefined;
    const waitMs = bodyMs ?? retryAfterMs(answer.header('retry-after'), now) ?? 1_000;
    const isGlobal = body['global'] === true || answer.header('x-ratelimit-global') !== undefined;
    return { kind: 'busy', status, error, retryAfterMs: Math.min(maxRetryAfterMs, waitMs) + 100, isGlobal };
  }
  if (status === 404) return { kind: 'gone', status, error: 'the webhook was deleted in Discord' };
  if (status === 401 || status === 403) {
    return { kind: 'gone', status, error: `Discord rejects the address of the webhook (${status})` };
  }
  if (status === 400) return { kind: 'refused', status, error };
  return { kind: 'failed', status, error };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function inWords({ status, text }: Answered): string {
  if (status >= 300 && status < 400) return `answered ${status}: redirects are not followed`;
  return `answered ${status}${text === '' ? '' : `: ${shorten(text, 200)}`}`;
}

function jsonIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
