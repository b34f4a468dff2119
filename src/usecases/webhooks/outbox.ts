import { isAlarm, isFor, type OutboxEvent, toldActions, typeOf } from '../../core/webhooks/event-types.ts';
import { type LeftOut, leftOut } from '../../core/webhooks/progress.ts';
import { maxAgeMs } from '../../core/webhooks/schedule.ts';
import type { Webhook } from '../../core/webhooks/webhook.ts';
import type { Ports } from '../../ports/index.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

/** Which events of the outbox are meant. */
export interface Wanted {
  webhook: Webhook;
  addressHash: string | undefined;
  /** On the way to Discord, alarms and all others go apart; absent: all. */
  part?: 'alarms' | 'log';
}

const pageEvents = 200;

/** The next events for a webhook, and where the look ended if there is none before that. */
export async function nextEvents(
  { store }: Pick<Ports, 'store'>,
  wanted: Wanted,
  { after, limit }: { after: number; limit: number },
): Promise<{ events: OutboxEvent[]; upTo: number }> {
  const events: OutboxEvent[] = [];
  let upTo = after;
  for (;;) {
    const page = await store.eventsAfter({ after: upTo, actions: toldActions, limit: pageEvents });
    events.push(...page.events.filter((one) => isWanted(wanted, one)));
    upTo = page.upTo;
    if (events.length >= limit || page.events.length < pageEvents) return { events: events.slice(0, limit), upTo };
  }
}

function isWanted({ webhook, addressHash, part }: Wanted, one: OutboxEvent): boolean {
  const type = typeOf(one);
  if (type === undefined || !isFor(webhook, one, addressHash)) return false;
  return part === undefined || isAlarm(type) === (part === 'alarms');
}

/** Where to look for the events that a webhook was not sent yet. On the way to Discord, alarms and all others have cursors of their own. */
export function partsOf({ kind, cursor, alarmCursor }: Webhook): Array<{ part?: 'alarms' | 'log'; after: number }> {
  if (kind === 'standard') return [{ after: cursor }];
  return [
    { part: 'alarms', after: alarmCursor },
    { part: 'log', after: cursor },
  ];
}

/** Cursors right before the next events for a webhook, or behind all events if there is none. */
export async function furthestCursors(
  { store }: Pick<Ports, 'store'>,
  wanted: Omit<Wanted, 'part'>,
): Promise<Pick<Webhook, 'cursor' | 'alarmCursor'>> {
  let { cursor, alarmCursor } = wanted.webhook;
  for (const { after, ...part } of partsOf(wanted.webhook)) {
    const { events, upTo } = await nextEvents({ store }, { ...wanted, ...part }, { after, limit: 1 });
    const passed = events[0] === undefined ? upTo : events[0].event.id - 1;
    if (part.part === 'alarms') alarmCursor = passed;
    else cursor = passed;
  }
  return { cursor, alarmCursor };
}

/** What was not sent to a webhook and happened before this time (epoch milliseconds); `undefined` if there is nothing. */
export async function unsentBefore(
  { store }: Pick<Ports, 'store'>,
  wanted: Omit<Wanted, 'part'>,
  before: number,
): Promise<LeftOut | undefined> {
  const { webhook } = wanted;
  let found: LeftOut | undefined;
  for (const { part, after } of partsOf(webhook)) {
    let passed = after;
    let isMore = true;
    while (isMore) {
      const query = { after: passed, limit: pageEvents };
      const { events } = await nextEvents({ store }, { ...wanted, ...(part && { part }) }, query);
      const old = events.filter(({ event }) => event.at < before);
      for (const { event } of old) {
        passed = event.id;
        if (event.action !== 'webhook.skip') found = withOne(found ?? nothingOf(webhook), event.id, part);
      }
      isMore = old.length === pageEvents;
    }
  }
  return found;
}

function nothingOf({ cursor, alarmCursor }: Webhook): LeftOut {
  return { cursor, alarmCursor, fromId: Number.POSITIVE_INFINITY, toId: 0, count: 0 };
}

function withOne({ fromId, toId, count, ...cursors }: LeftOut, id: number, part: Wanted['part']): LeftOut {
  const moved = part === 'alarms' ? { alarmCursor: id } : { cursor: id };
  return { ...cursors, ...moved, fromId: Math.min(fromId, id), toId: Math.max(toId, id), count: count + 1 };
}

/** Leaves out all that became too old while the target took nothing, and tells the webhook so with one event. False if nothing did. */
export async function leaveOutOld({ store, clock }: Tools, wanted: Omit<Wanted, 'part'>): Promise<boolean> {
  const now = clock.now();
  const old = await unsentBefore({ store }, wanted, now - maxAgeMs);
  if (old === undefined) return false;
  await store.recordProgress({ webhookId: wanted.webhook.id, sequences: [] }, ({ webhook }) =>
    leftOut(webhook, old, { by: 'daemon', at: now }),
  );
  return true;
}

/** When the oldest event happened that a webhook is still to get (epoch milliseconds); `undefined` if there is none. */
export async function oldestUndelivered({ store }: Pick<Ports, 'store'>): Promise<number | undefined> {
  const webhooks = await store.listWebhooks();
  const times = await Promise.all(webhooks.map((webhook) => oldestFor({ store }, webhook)));
  return times.flat().toSorted((one, other) => one - other)[0];
}

async function oldestFor({ store }: Pick<Ports, 'store'>, webhook: Webhook): Promise<number[]> {
  const { id, isForGames } = webhook;
  // Which events games sent here is asked of nobody: all of them may be.
  const wanted = { webhook: isForGames ? { ...webhook, events: ['all'] } : webhook, addressHash: undefined };
  const after = webhook.kind === 'discord' ? Math.min(webhook.cursor, webhook.alarmCursor) : webhook.cursor;
  const { events } = await nextEvents({ store }, wanted, { after, limit: 1 });
  const [waiting] = await store.listDeliveries({ webhookId: id, state: 'waiting', oldestFirst: true, limit: 1 });
  const again = waiting === undefined ? [] : await store.findEvents([waiting.sequence]);
  return [...events, ...again].map(({ event }) => event.at);
}
