import type { Logger } from '../../base/log.ts';
import { newestOf } from '../../core/declarations.ts';
import type { OutboxEvent } from '../../core/webhooks/event-types.ts';
import {
  gatheringAfter,
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
import { type EventView, eventBody, isPassed, leaveOutOld, nextEvents, type Part, viewEvents } from './outbox.ts';
import { type Sending, sendMessage, sendSigned, targetOf } from './send.ts';

/** The context for deliveries under one configuration. */
interface Delivering extends Sending {
  store: Store;
  log: Logger;
  group: { title: string };
  deliveries: DeliveryCounts;
}

/** A process's memory of a webhook between two rounds. */
export interface Progress {
  /** Events up to these numbers were read and are not for it. The cursors are saved only occasionally. */
  lookedTo: { alarms: number; log: number };
  /** Events for a channel are gathered until then (`Clock.monotonic()`); absent if there are none. */
  gathering?: { until: number; digests: number } | undefined;
  /** The latest message to the channel, apart from alarms. */
  lastSent?: { at: number; digests: number };
}

/**
 * The ids of the webhooks that this daemon may deliver events to now, and the total number of webhooks that it serves.
 */
export async function webhooksToServe({
  store,
  clock,
}: Pick<Delivering, 'store' | 'clock'>): Promise<{ ids: string[]; count: number }> {
  const webhooks = await servedHere(store);
  const now = clock.now();
  const served = webhooks.filter(({ state, heldUntil = 0 }) => state === 'enabled' && heldUntil <= now);
  return { ids: served.map(({ id }) => id), count: webhooks.length };
}

/**
 * One daemon serves a webhook. If several share the store, a declared webhook is served by the daemon whose declaration
 * applies, because its own files have the right address.
 */
async function servedHere(store: Store): Promise<Webhook[]> {
  const webhooks = await store.listWebhooks();
  if (webhooks.length === 0) return [];
  const servesUndeclared = await isInCharge({ store }, 'webhooks');
  const isAnyDeclared = webhooks.some(({ declaredIn }) => declaredIn !== undefined);
  const declarations = isAnyDeclared ? await store.webhookDeclarations() : undefined;
  return webhooks.filter(({ name }) => {
    const whose = declarations && newestOf(name, declarations);
    return whose === undefined ? servesUndeclared : whose === 'own';
  });
}

/** After this many, other targets have their turn, because only a limited number is served at once. */
const maxInRound = 50;

/**
 * One round: delivers to a webhook until nothing is left, or it got many events, or the target asks for a pause, or
 * `signal` is aborted.
 */
export async function deliverTo(
  current: () => Delivering,
  webhookId: string,
  { progress, limits, signal }: { progress: Progress; limits: DiscordLimits; signal: AbortSignal },
): Promise<void> {
  for (let count = 0; count < maxInRound; count += 1) {
    signal.throwIfAborted();
    const app = current();
    const webhook = (await servedHere(app.store)).find(({ id }) => id === webhookId);
    const target = webhook && targetOf(app, webhook);
    if (webhook?.state !== 'enabled' || target === undefined) return;
    if ((webhook.heldUntil ?? 0) > app.clock.now()) return;
    const round: Round = { app, webhook, target, progress, limits, signal };
    const isMore = webhook.kind === 'discord' ? await toDiscord(round) : await toProgram(round);
    if (!isMore) return;
  }
}

/** Discord can pause all its webhooks at once. */
export class DiscordLimits {
  /** On `Clock.monotonic()`. */
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

/** The pause between events to one program limits their rate. */
const pauseMs = 100;

/** Sends one event. False if there is nothing to send now. */
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
 * Order: the next alarm, due retries that were overtaken, the next event, redeliveries. A thief's noise delays no
 * alarm.
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

/** The next events by the cursor; `again` if some were too old and are now skipped. */
async function peek({ app, webhook, progress }: Round, part: Part, limit: number): Promise<OutboxEvent[] | 'again'> {
  const cursor = part === 'alarms' ? webhook.alarmCursor : webhook.cursor;
  const after = Math.max(cursor, progress.lookedTo[part]);
  const { events, upTo } = await nextEvents(app, { webhook, part }, { after, limit });
  const isOld = (events[0]?.event.at ?? Number.POSITIVE_INFINITY) < app.clock.now() - maxAgeMs;
  if (isOld && (await leaveOutOld(app, webhook))) return 'again';
  if (events.length === 0) progress.lookedTo[part] = upTo;
  if (events.length === 0 && upTo - cursor > writtenEvery) {
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

/** A cursor that only passes events for others is saved after this many. */
const writtenEvery = 500;

/** An event that was to be sent again became too old, or retention has removed it. */
async function giveUp({ app, webhook }: Round, sequence: number): Promise<void> {
  await app.store.recordProgress({ webhookId: webhook.id, sequences: [sequence] }, ({ deliveries }) => ({
    webhook: {},
    put: deliveries.map(({ nextTryAt: _, ...one }) => ({
      ...one,
      state: 'failed',
      error: 'it is too old, or was removed',
    })),
    events: [],
  }));
}

// ---- Discord ----

const maxGathered = 2_000;
/** A pause that Discord asks for is waited for if it is no longer than this; otherwise, the round ends. */
const maxRestMs = 5_000;

/** Sends the alarms, or else the next events of the log. False if there is nothing to send now. */
async function toDiscord(round: Round): Promise<boolean> {
  const { app, progress } = round;
  if (app.clock.monotonic() < round.limits.heldUntil) return false;
  const alarms = await sendAlarms(round);
  if (alarms !== undefined) return alarms;
  progress.gathering ??= await gatheringOf(round);
  if (progress.gathering === undefined) return sendAgain(round);
  const { until, digests } = progress.gathering;
  if (app.clock.monotonic() < until) return false;
  const events = await peek(round, 'log', maxGathered);
  if (events === 'again') return true;
  const isMore = await sendPlanned(
    round,
    logMessages(await viewEvents(app, events), app.clock.now(), { isBurst: isBurst({ digests }) }),
  );
  if (!isMore) return false; // gathered events continue as soon as the target accepts them
  progress.gathering = undefined;
  progress.lastSent = { at: app.clock.monotonic(), digests: events.length > maxEmbeds ? digests + 1 : 0 };
  return true;
}

/**
 * `undefined` if there is nothing to gather. The round ends in the meantime, so that the next rounds can check for
 * alarms.
 */
async function gatheringOf(round: Round): Promise<Progress['gathering']> {
  const { app, progress } = round;
  const first = await peek(round, 'log', 1);
  if (first.length === 0) return undefined;
  const now = app.clock.monotonic();
  const { lastSent } = progress;
  const { ms, digests } = gatheringAfter(lastSent && { agoMs: now - lastSent.at, digests: lastSent.digests });
  return { until: now + ms, digests };
}

/** `undefined` if there is none. */
async function sendAlarms(round: Round): Promise<boolean | undefined> {
  const events = await peek(round, 'alarms', 10);
  if (events === 'again') return true;
  if (events.length === 0) return undefined;
  return sendPlanned(round, [alarmMessage(await viewEvents(round.app, events), round.webhook.mention)]);
}

/** Sends an event that an operator asked to redeliver. */
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

/** Sends messages in order, with alarms between them. False if the target can't accept more now. */
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

/** A message that Discord does not understand is sent again as plain text. */
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
    round.webhook = { ...webhook, cursor, alarmCursor }; // the rest of the round begins after the sent events
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

/** The number of events that each target accepted or refused, since the process began. */
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
