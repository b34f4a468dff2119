import { eventsSkipped } from '../../core/events.ts';
import { isAlarm, isFor, type OutboxEvent, toldActions, typeOf } from '../../core/webhooks/event-types.ts';
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

/**
 * Leaves out what became too old while the target was dead, or everything up to `toId`, and tells the webhook so with one event. What
 * waits for another try and is too old goes the same way.
 */
export async function skipOld(
  { store, clock }: Tools,
  wanted: Wanted,
  events: readonly OutboxEvent[],
): Promise<boolean> {
  const now = clock.now();
  const old = events.filter(({ event }) => event.at < now - maxAgeMs && event.action !== 'webhook.skip');
  const [first, last] = [old[0]?.event, old.at(-1)?.event];
  if (first === undefined || last === undefined) return false;
  const { webhook, part } = wanted;
  const cursor = part === 'alarms' ? { alarmCursor: last.id } : { cursor: last.id };
  const skipped = eventsSkipped(
    webhook,
    { fromId: first.id, toId: last.id, count: old.length },
    { by: 'daemon', at: now },
  );
  await store.recordProgress({ webhookId: webhook.id, sequences: [] }, () => ({
    ...{ webhook: cursor, put: [], events: [skipped] },
  }));
  return true;
}

/** When the oldest event happened that an enabled webhook is still to get (epoch milliseconds); `undefined` if there is none. */
export async function oldestUndelivered({ store }: Pick<Ports, 'store'>): Promise<number | undefined> {
  const enabled = (await store.listWebhooks()).filter(({ state }) => state === 'enabled');
  const times = await Promise.all(enabled.map((webhook) => oldestFor({ store }, webhook)));
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
