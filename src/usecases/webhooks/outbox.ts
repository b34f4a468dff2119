import { isoTime } from '../../base/time.ts';
import type { Skipped } from '../../core/events.ts';
import { groupIdIn, isSimulatedGroup } from '../../core/group-title.ts';
import {
  alarmActions,
  changeAt,
  deliveredActions,
  fixOf,
  isAlarm,
  moveOf,
  type OutboxEvent,
  receives,
  typeOf,
  type WebhookEventType,
} from '../../core/webhooks/event-types.ts';
import { type LeftOut, leftOut, maxAgeMs } from '../../core/webhooks/progress.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';
import { detailedChangeDocument } from '../history/change-document.ts';
import { type ChangeView, withNames } from '../history/history.ts';
import { hashOf } from './send.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

/** Alarms have a separate lane and cursor, so that they overtake all other events. */
export type Part = 'alarms' | 'log';

const pageEvents = 200;

/** Returns the next events for a webhook, and the sequence number up to which the outbox was scanned. */
export async function nextEvents(
  { store }: Pick<Ports, 'store'>,
  { webhook, part }: { webhook: Webhook; part: Part },
  { after, limit }: { after: number; limit: number },
): Promise<{ events: OutboxEvent[]; upTo: number }> {
  const hash = webhook.isForGames ? hashOf(webhook) : undefined;
  const isWanted = (one: OutboxEvent) => {
    const type = typeOf(one);
    if (type === undefined || !receives(webhook, one, hash)) return false;
    return isAlarm(type) === (part === 'alarms');
  };
  const actions = part === 'alarms' ? alarmActions : deliveredActions;
  const events: OutboxEvent[] = [];
  let upTo = after;
  let asked = Math.min(pageEvents, limit); // a small first page avoids loading changes that no caller needs
  for (;;) {
    const page = await store.eventsAfter({ after: upTo, actions, limit: asked });
    events.push(...page.events.filter(isWanted));
    upTo = page.upTo;
    if (events.length >= limit || page.events.length < asked) return { events: events.slice(0, limit), upTo };
    asked = Math.min(pageEvents, 4 * asked);
  }
}

export function partsOf({ cursor, alarmCursor }: Webhook): Array<{ part: Part; after: number }> {
  return [
    { part: 'alarms', after: alarmCursor },
    { part: 'log', after: cursor },
  ];
}

export function isPassed(
  { cursor, alarmCursor }: Webhook,
  { type, sequence }: Pick<Delivery, 'type' | 'sequence'>,
): boolean {
  return sequence <= (isAlarm(type) ? alarmCursor : cursor);
}

/**
 * Returns the furthest cursors that skip none of the webhook's events: right before its next event or, if it has none
 * left, at the end of the outbox.
 */
export async function furthestCursors(
  { store }: Pick<Ports, 'store'>,
  webhook: Webhook,
): Promise<Pick<Webhook, 'cursor' | 'alarmCursor'>> {
  let { cursor, alarmCursor } = webhook;
  for (const { part, after } of partsOf(webhook)) {
    const { events, upTo } = await nextEvents({ store }, { webhook, part }, { after, limit: 1 });
    const passed = events[0] === undefined ? upTo : events[0].event.id - 1;
    if (part === 'alarms') alarmCursor = passed;
    else cursor = passed;
  }
  return { cursor, alarmCursor };
}

/** Summarizes a webhook's unsent events from before this time (epoch milliseconds); `undefined` if there are none. */
export async function unsentBefore(
  { store }: Pick<Ports, 'store'>,
  webhook: Webhook,
  before: number,
): Promise<LeftOut | undefined> {
  let found: LeftOut | undefined;
  for (const { part, after } of partsOf(webhook)) {
    let passed = after;
    let hasMore = true;
    while (hasMore) {
      const { events } = await nextEvents({ store }, { webhook, part }, { after: passed, limit: pageEvents });
      const old = events.filter(({ event }) => event.at < before);
      for (const { event } of old) {
        passed = event.id;
        found = withOne(found ?? noneLeftOut(webhook), event, part);
      }
      hasMore = old.length === pageEvents;
    }
  }
  return found;
}

function noneLeftOut({ cursor, alarmCursor }: Webhook): LeftOut {
  return { cursor, alarmCursor, fromId: Number.POSITIVE_INFINITY, toId: 0, count: 0 };
}

/** Adds an event to the summary. A `webhook.skip` event counts as all the events that it reports as skipped. */
function withOne(left: LeftOut, { id, action, detail }: OutboxEvent['event'], part: Part): LeftOut {
  const { fromId, toId, count } = (action === 'webhook.skip'
    ? detail
    : { fromId: id, toId: id, count: 1 }) as unknown as Skipped;
  return {
    ...{ ...left, ...(part === 'alarms' ? { alarmCursor: id } : { cursor: id }) },
    ...{ fromId: Math.min(left.fromId, fromId), toId: Math.max(left.toId, toId), count: left.count + count },
  };
}

/**
 * Skips all unsent events that are too old, and records one event that reports the skip. Returns false if there were
 * none.
 */
export async function skipOldEvents({ store, clock }: Tools, webhook: Webhook): Promise<boolean> {
  const now = clock.now();
  const old = await unsentBefore({ store }, webhook, now - maxAgeMs);
  if (old === undefined) return false;
  await store.recordProgress({ webhookId: webhook.id, sequences: [] }, (facts) =>
    leftOut(facts.webhook, old, { by: 'daemon', at: now }),
  );
  return true;
}

/** Returns the time of the oldest undelivered event (epoch milliseconds); `undefined` if there is none. */
export async function oldestUndelivered({ store }: Pick<Ports, 'store'>): Promise<number | undefined> {
  const webhooks = await store.listWebhooks();
  const times = await Promise.all(webhooks.map((webhook) => oldestFor({ store }, webhook)));
  return times.flat().toSorted((one, other) => one - other)[0];
}

async function oldestFor({ store }: Pick<Ports, 'store'>, webhook: Webhook): Promise<number[]> {
  const pages = await Promise.all(
    partsOf(webhook).map(({ part, after }) => nextEvents({ store }, { webhook, part }, { after, limit: 1 })),
  );
  const events = pages.flatMap((page) => page.events);
  const query = { webhookId: webhook.id, state: 'waiting', oldestFirst: true, limit: 1 } as const;
  const [waiting] = await store.listDeliveries(query);
  const again = waiting === undefined ? [] : await store.findEvents([waiting.sequence]);
  return [...events, ...again].map(({ event }) => event.at);
}

export interface EventView {
  sequence: number;
  type: WebhookEventType;
  event: OutboxEvent['event'];
  /** The change that the event reports, as it was at the time of the event. */
  view?: ChangeView;
}

/** Adds the names of keys and users to the events, and omits events that are not for webhooks. */
export async function viewEvents(
  ports: Pick<Ports, 'store' | 'clock'>,
  events: readonly OutboxEvent[],
): Promise<EventView[]> {
  const changes = events.flatMap(({ event, change }) => (change === undefined ? [] : [changeAt(event, change)]));
  const named = changes.length === 0 ? [] : await withNames(ports, changes);
  const found = [...named];
  return events.flatMap((one) => {
    const view = one.change === undefined ? undefined : found.shift();
    const type = typeOf(one);
    if (type === undefined) return [];
    return [{ sequence: one.event.id, type, event: one.event, ...(view !== undefined && { view }) }];
  });
}

/** `groupTitle` is the daemon's group, which is used for events that are not about a change. */
export function eventBody(
  { sequence, type, event, view }: EventView,
  { workspaceId, groupTitle }: { workspaceId: string; groupTitle: string },
): string {
  const title = view?.change.group ?? groupTitle;
  const data = {
    sequence,
    workspaceId,
    groupId: groupIdIn(title) ?? null,
    ...(isSimulatedGroup(title) && { simulated: true }),
    ...(view === undefined ? eventPayload({ type, event }) : changePayload(view, type)),
  };
  return JSON.stringify({ type, timestamp: isoTime(event.at), data });
}

function eventPayload({ type, event }: Pick<EventView, 'type' | 'event'>) {
  const { by, subject, detail } = event;
  const fix = fixOf(type, event);
  return { by, subject, detail, ...(fix !== undefined && { try: fix }) };
}

function changePayload(view: ChangeView, type: WebhookEventType) {
  const { undoOf, hold } = view.change;
  return {
    ...(type === 'rank.changed' && { direction: moveOf(view.change) }),
    ...(undoOf !== undefined && { undoOf }),
    ...(hold !== undefined && { suspensionId: hold.id }),
    change: withShortLists(detailedChangeDocument(view)),
  };
}

const maxListed = 100;

/** Truncates long lists, because receivers would reject a huge event about a member with thousands of roles. */
function withShortLists(document: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(document).flatMap(([name, value]) => {
      if (!Array.isArray(value) || value.length <= maxListed) return [[name, value]];
      return [
        [name, value.slice(0, maxListed)],
        [`${name}Count`, value.length],
      ];
    }),
  );
}
