import type { Logger } from '../../base/log.ts';
import { newestOf } from '../../core/declarations.ts';
import type { OutboxEvent } from '../../core/webhooks/event-types.ts';
import {
  batchWindowAfter,
  isBurst,
  maxAgeMs,
  maxEmbeds,
  type Outcome,
  progressOf,
  triesInPlace,
} from '../../core/webhooks/progress.ts';
import { eventId, type Webhook } from '../../core/webhooks/webhook.ts';
import type { Store } from '../../ports/index.ts';
import { isInCharge } from '../upkeep/nodes.ts';
import { alarmMessage, asPlainLine, logMessages, type PlannedMessage } from './discord.ts';
import { type EventView, eventBody, isPassed, nextEvents, type Part, skipOldEvents, viewEvents } from './outbox.ts';
import { type Sending, sendMessage, sendSigned, targetOf } from './send.ts';

interface Delivering extends Sending {
  store: Store;
  log: Logger;
  group: { title: string };
  deliveries: DeliveryCounts;
}

/** The in-memory state of a webhook between two rounds. */
export interface Progress {
  /**
   * The webhook has no events left up to these sequence numbers. Its stored cursors may lag behind, because they are
   * written only occasionally.
   */
  scannedTo: { alarms: number; log: number };
  /**
   * Set while events for a channel are being collected, until `until` (on `Clock.monotonic()`). `digests` is the number
   * of consecutive digests sent so far.
   */
  batchWindow?: { until: number; digests: number } | undefined;
  /** The latest message sent to the channel, other than alarms. */
  lastSent?: { at: number; digests: number };
}

/** Returns the ids of the webhooks that are ready for events, and the number of webhooks that this daemon serves. */
export async function webhooksToServe({
  store,
  clock,
}: Pick<Delivering, 'store' | 'clock'>): Promise<{ ids: string[]; count: number }> {
  const webhooks = await webhooksServedHere(store);
  const now = clock.now();
  const served = webhooks.filter(({ state, heldUntil = 0 }) => state === 'enabled' && heldUntil <= now);
  return { ids: served.map(({ id }) => id), count: webhooks.length };
}

/**
 * Returns the webhooks that this daemon serves. One daemon serves all undeclared webhooks. A declared webhook is served
 * by the daemon whose declaration applies, because only that daemon's configuration contains the address.
 */
async function webhooksServedHere(store: Store): Promise<Webhook[]> {
  const webhooks = await store.listWebhooks();
  if (webhooks.length === 0) return [];
  const servesUndeclared = await isInCharge({ store }, 'webhooks');
  const isAnyDeclared = webhooks.some(({ declaredIn }) => declaredIn !== undefined);
  const declarations = isAnyDeclared ? await store.webhookDeclarations() : undefined;
  return webhooks.filter(({ name }) => {
    const declaredBy = declarations && newestOf(name, declarations);
    return declaredBy === undefined ? servesUndeclared : declaredBy === 'own';
  });
}

/**
 * The maximum number of deliveries per round. Only a few targets are served at a time, so the others must get a turn.
 */
const maxInRound = 50;

/**
 * Runs one round: delivers to a webhook until nothing is left, the round is full or the target asks for a pause.
 * Rejects if `signal` is aborted.
 */
export async function deliverTo(
  current: () => Delivering,
  webhookId: string,
  { progress, limits, signal }: { progress: Progress; limits: DiscordLimits; signal: AbortSignal },
): Promise<void> {
  for (let count = 0; count < maxInRound; count += 1) {
    signal.throwIfAborted();
    const app = current();
    const webhook = (await webhooksServedHere(app.store)).find(({ id }) => id === webhookId);
    const target = webhook && targetOf(app, webhook);
    if (webhook?.state !== 'enabled' || target === undefined) return;
    if ((webhook.heldUntil ?? 0) > app.clock.now()) return;
    const round: Round = { app, webhook, target, progress, limits, signal };
    const hasMore = webhook.kind === 'discord' ? await toDiscord(round) : await toProgram(round);
    if (!hasMore) return;
  }
}

/** Discord's global rate limit, which all of its webhooks share. */
export class DiscordLimits {
  /** Nothing is sent to Discord before this time (on `Clock.monotonic()`). */
  heldUntil = 0;
}

interface Round {
  app: Delivering;
  webhook: Webhook;
  target: NonNullable<ReturnType<typeof targetOf>>;
  progress: Progress;
  limits: DiscordLimits;
  signal: AbortSignal;
}

const pauseMs = 100;

/** Sends the next event to a program. Returns false if there is nothing more to send now. */
async function toProgram(round: Round): Promise<boolean> {
  const { app, webhook, signal } = round;
  const one = await nextForProgram(round);
  if (one === 'again') return true;
  if (one === undefined) return false;
  const [view] = await viewEvents(app, [one]);
  if (view === undefined) return false;
  const workspace = await app.store.getWorkspace();
  const id = eventId(workspace.id, view.sequence);
  const body = eventBody(view, { workspaceId: workspace.id, groupTitle: app.group.title });
  const outcome = await sendSigned(app, round.target, { id, body }, signal);
  await record(round, [view], outcome);
  await app.clock.sleep(pauseMs, signal);
  return webhook.state === 'enabled';
}

/**
 * Returns the next event, by priority: an alarm, a retry that later events have overtaken, a new event, a redelivery.
 * Alarms come first, so that an attacker with a stolen key cannot delay them by causing many events. Returns `again`
 * after giving up on an event or skipping old ones.
 */
async function nextForProgram(round: Round): Promise<OutboxEvent | 'again' | undefined> {
  const { app, webhook } = round;
  const alarm = await nextByCursor(round, 'alarms');
  if (alarm !== undefined) return alarm;
  const query = { webhookId: webhook.id, dueAt: app.clock.now(), oldestFirst: true, limit: 50 };
  const due = (await app.store.listDeliveries(query)).filter((delivery) => isPassed(webhook, delivery));
  const late = due.find(({ tries }) => tries >= triesInPlace);
  const next = late === undefined ? await nextByCursor(round, 'log') : undefined;
  if (next !== undefined) return next;
  const waiting = late ?? due[0];
  if (waiting === undefined) return undefined;
  const isTooOld = waiting.tries > 0 && waiting.firstAt < app.clock.now() - maxAgeMs;
  const [event] = isTooOld ? [] : await app.store.findEvents([waiting.sequence]);
  if (event !== undefined) return event;
  await giveUp(round, waiting.sequence);
  return 'again';
}

async function nextByCursor(round: Round, part: Part): Promise<OutboxEvent | 'again' | undefined> {
  const found = await peek(round, part, 1);
  return found === 'again' ? found : found[0];
}

/** Returns the next events after the cursor, or `again` after skipping events that are too old. */
async function peek({ app, webhook, progress }: Round, part: Part, limit: number): Promise<OutboxEvent[] | 'again'> {
  const cursor = part === 'alarms' ? webhook.alarmCursor : webhook.cursor;
  const after = Math.max(cursor, progress.scannedTo[part]);
  const { events, upTo } = await nextEvents(app, { webhook, part }, { after, limit });
  const isOld = (events[0]?.event.at ?? Number.POSITIVE_INFINITY) < app.clock.now() - maxAgeMs;
  if (isOld && (await skipOldEvents(app, webhook))) return 'again';
  if (events.length === 0) progress.scannedTo[part] = upTo;
  if (events.length === 0 && upTo - cursor > cursorStoredEvery) {
    const moved = part === 'alarms' ? { alarmCursor: upTo } : { cursor: upTo };
    const sequences: number[] = [];
    await app.store.recordProgress({ webhookId: webhook.id, sequences }, () => ({
      webhook: moved,
      put: [],
      events: [],
    }));
  }
  return events;
}

/** A cursor is stored once it has passed this many events that its webhook does not receive. */
const cursorStoredEvery = 500;

async function giveUp({ app, webhook }: Round, sequence: number): Promise<void> {
  await app.store.recordProgress({ webhookId: webhook.id, sequences: [sequence] }, ({ deliveries }) => ({
    webhook: {},
    put: deliveries.map(({ nextTryAt: _, ...one }) => ({
      ...one,
      state: 'failed',
      error: 'the event is too old, or was removed',
    })),
    events: [],
  }));
}

// ---- Discord ----

const maxBatch = 2_000;
/** The longest pause within a round. If Discord asks for a longer one, the round ends. */
const maxRestMs = 5_000;

/** Sends the next alarms or, if there are none, the next other events. Returns false if nothing can be sent now. */
async function toDiscord(round: Round): Promise<boolean> {
  const { app, progress } = round;
  if (app.clock.monotonic() < round.limits.heldUntil) return false;
  const alarms = await sendAlarms(round);
  if (alarms !== undefined) return alarms;
  progress.batchWindow ??= await batchWindowOf(round);
  if (progress.batchWindow === undefined) return sendAgain(round);
  const { until, digests } = progress.batchWindow;
  if (app.clock.monotonic() < until) return false;
  const events = await peek(round, 'log', maxBatch);
  if (events === 'again') return true;
  const isSent = await sendPlanned(
    round,
    logMessages(await viewEvents(app, events), app.clock.now(), { isBurst: isBurst({ digests }) }),
  );
  if (!isSent) return false; // a later round sends the collected events
  progress.batchWindow = undefined;
  progress.lastSent = { at: app.clock.monotonic(), digests: events.length > maxEmbeds ? digests + 1 : 0 };
  return true;
}

/**
 * Plans how long to collect events before sending them; returns `undefined` if there are none. In the meantime, alarms
 * are still sent.
 */
async function batchWindowOf(round: Round): Promise<Progress['batchWindow']> {
  const { app, progress } = round;
  const first = await peek(round, 'log', 1);
  if (first.length === 0) return undefined;
  const now = app.clock.monotonic();
  const { lastSent } = progress;
  const { ms, digests } = batchWindowAfter(lastSent && { agoMs: now - lastSent.at, digests: lastSent.digests });
  return { until: now + ms, digests };
}

/** Sends the next alarms. Returns `undefined` if there are none, and false if the target can't accept more now. */
async function sendAlarms(round: Round): Promise<boolean | undefined> {
  const events = await peek(round, 'alarms', 10);
  if (events === 'again') return true;
  if (events.length === 0) return undefined;
  return sendPlanned(round, [alarmMessage(await viewEvents(round.app, events), round.webhook.mention)]);
}

/** Resends up to 500 events that are due for redelivery, and gives up on those that are no longer stored. */
async function sendAgain(round: Round): Promise<boolean> {
  const { app, webhook } = round;
  const query = { webhookId: webhook.id, dueAt: app.clock.now(), oldestFirst: true, limit: 500 };
  const sequences = (await app.store.listDeliveries(query)).map(({ sequence }) => sequence);
  if (sequences.length === 0) return false;
  const events = await app.store.findEvents(sequences);
  const gone = sequences.filter((sequence) => !events.some(({ event }) => event.id === sequence));
  for (const sequence of gone) await giveUp(round, sequence);
  return sendPlanned(round, logMessages(await viewEvents(app, events), app.clock.now()));
}

/** Sends messages in order, and any new alarms between them. Returns false if the target can't accept more now. */
async function sendPlanned(round: Round, planned: readonly PlannedMessage[]): Promise<boolean> {
  for (const [index, one] of planned.entries()) {
    if (index > 0 && (await sendAlarms(round)) === false) return false;
    const outcome = await sendOne(round, one);
    await record(round, one.events, outcome);
    if (outcome.kind === 'busy' && outcome.isGlobal) {
      round.limits.heldUntil = round.app.clock.monotonic() + outcome.retryAfterMs;
    }
    const restMs = outcome.kind === 'delivered' ? (outcome.restMs ?? 0) : Number.POSITIVE_INFINITY;
    if (restMs > maxRestMs) return outcome.kind === 'refused';
    if (restMs > 0) await round.app.clock.sleep(restMs, round.signal);
  }
  return true;
}

async function sendOne({ app, target, signal }: Round, planned: PlannedMessage): Promise<Outcome> {
  const outcome = await sendMessage(app, target, planned.message, signal);
  return outcome.kind === 'refused' ? sendMessage(app, target, asPlainLine(planned), signal) : outcome;
}

// ---- results ----

async function record(round: Round, events: readonly EventView[], outcome: Outcome): Promise<void> {
  const { app, webhook } = round;
  const { name } = webhook;
  const sequences = events.map(({ sequence }) => sequence);
  const random = Math.random();
  await app.store.recordProgress({ webhookId: webhook.id, sequences }, (facts) => {
    const progress = progressOf({ ...facts, events, outcome, now: app.clock.now(), random });
    const { cursor = webhook.cursor, alarmCursor = webhook.alarmCursor } = progress.webhook;
    round.webhook = { ...webhook, cursor, alarmCursor }; // the rest of the round continues after the sent events
    return progress;
  });
  app.deliveries.note(name, outcome.kind, events.length);
  if (outcome.kind === 'delivered') {
    if (webhook.failingSince !== undefined) app.log.info({ webhook: name }, 'the webhook accepts events again');
  } else if (outcome.kind === 'gone') {
    app.log.error({ webhook: name, problem: 'webhook' }, `the webhook is disabled: ${outcome.error}`);
  } else if (outcome.kind !== 'busy' && webhook.failingSince === undefined) {
    app.log.warn({ webhook: name }, `the webhook does not accept events: ${outcome.error}`);
  }
}

interface DeliveryCount {
  webhook: string;
  outcome: Outcome['kind'];
  count: number;
}

export class DeliveryCounts {
  readonly #counts = new Map<string, DeliveryCount>();

  note(webhook: string, outcome: Outcome['kind'], events: number): void {
    const key = `${webhook} ${outcome}`;
    const before = this.#counts.get(key)?.count ?? 0;
    this.#counts.set(key, { webhook, outcome, count: before + events });
  }

  list(): DeliveryCount[] {
    return [...this.#counts.values()];
  }
}
