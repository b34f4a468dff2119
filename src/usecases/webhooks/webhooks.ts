import { RankdError } from '../../base/errors.ts';
import { crypto } from '../../base/node-modules.ts';
import { isoTime } from '../../base/time.ts';
import { newId } from '../../core/api-key.ts';
import { webhookDisabled, webhookEvent } from '../../core/events.ts';
import { readAddress, type WebhookAddress } from '../../core/webhooks/address.ts';
import { plainMessage } from '../../core/webhooks/discord-message.ts';
import { flawOfEvents, typeOf } from '../../core/webhooks/event-types.ts';
import { leftOut, type Outcome } from '../../core/webhooks/progress.ts';
import { maxAgeMs } from '../../core/webhooks/schedule.ts';
import { newWebhookSecret } from '../../core/webhooks/signature.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import { judgeNewWebhook, judgeOne, unknownWebhook } from '../../core/webhooks/webhook-changes.ts';
import type { Ports } from '../../ports/index.ts';
import type { KeepSecret } from '../keys/keys.ts';
import { furthestCursors, nextEvents, partsOf, unsentBefore } from './outbox.ts';
import { addressHash, boundsOf, type Sending, sendMessage, sendSigned, targetOf } from './target.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

export interface WebhookRequest {
  name: string;
  target: WebhookAddress;
  events: string[];
  mention?: string | undefined;
  isForGames?: boolean | undefined;
  by: string;
}

/** Makes a webhook; one for programs has a secret, which is shown this once. Throws `already_exists` and `conflict`. */
export async function addWebhook(
  { store, clock }: Tools,
  { name, target, events, mention, isForGames, by }: WebhookRequest,
  keep: KeepSecret = () => () => undefined,
): Promise<{ webhook: Webhook; secret: string | undefined }> {
  const secret = target.kind === 'standard' ? newWebhookSecret() : undefined;
  const takeBack = secret === undefined ? () => undefined : keep(secret);
  const webhook = {
    ...{ id: newId('wh'), name, events, createdAt: clock.now(), ...target },
    ...(secret !== undefined && { secret }),
    ...(mention !== undefined && { mention }),
    ...(isForGames && { isForGames }),
  };
  try {
    await store.updateWebhooks(judgeNewWebhook(webhook, { by, at: clock.now() }));
  } catch (error) {
    takeBack();
    throw error;
  }
  return { webhook: await requireWebhook({ store }, name), secret };
}

/** Throws the refusal of `readAddress`. */
export function addressFrom(text: string, kind?: Webhook['kind']): WebhookAddress {
  const read = readAddress(text, kind);
  if ('refusal' in read) throw read.refusal;
  return read;
}

/** Throws `usage` if nothing can ever be sent to the address, as every try would find; `already_exists` if the configuration has it. */
export async function refuseForbidden(
  { courier, webhooks }: Sending,
  { address, shown }: WebhookAddress,
): Promise<void> {
  const [twin] = [...webhooks.declared].find(([, declared]) => declared.address === address) ?? [];
  if (twin !== undefined)
    throw new RankdError('already_exists', `The webhook ${twin}, which the configuration declares, has this address.`, {
      hint: `rankd webhook show ${twin}`,
    });
  const why = await courier.whyForbidden({ address, allowPrivate: webhooks.allowPrivate });
  if (why === undefined) return;
  throw new RankdError('usage', `Nothing can be sent to ${shown}: ${why}.`, {
    hint: 'allow the network of your own machine in the configuration: webhooks: { allow_private: [192.168.1.0/24] }',
  });
}

/** Throws `usage` if there is no such event. */
export function eventsFrom(names: readonly string[]): string[] {
  for (const name of names) {
    const flaw = flawOfEvents(name);
    if (flaw === undefined) continue;
    const hint = flaw.suggestion === undefined ? 'rankd webhook add --help lists them' : `--events ${flaw.suggestion}`;
    throw new RankdError('usage', flaw.message, { hint });
  }
  return [...new Set(names)];
}

/** What is to change of a webhook; what is absent stays as it is. */
export interface WebhookSetting {
  target?: WebhookAddress | undefined;
  events?: string[] | undefined;
  mention?: string | 'none' | undefined;
}

/** Holds from the next delivery. Throws `not_found`, and `conflict` if it is declared, or another kind of target. */
export async function setWebhook(
  { store, clock }: Tools,
  { name, by, target, events, mention }: WebhookSetting & { name: string; by: string },
): Promise<Webhook> {
  const doing = { by, at: clock.now() };
  const found = await requireWebhook({ store }, name);
  // What it did not ask for and happened before is not told afterwards.
  const { cursor, alarmCursor } = await furthestCursors({ store }, { webhook: found, addressHash: hashOf(found) });
  await store.updateWebhooks(
    judgeOne(name, ({ mention: before, ...webhook }) => {
      if (target !== undefined && target.kind !== webhook.kind) return { refusal: otherKind(webhook, target) };
      const role = mention === 'none' ? undefined : (mention ?? before);
      const change = {
        ...{ ...webhook, ...target, events: events ?? webhook.events },
        ...{ cursor: Math.max(cursor, webhook.cursor), alarmCursor: Math.max(alarmCursor, webhook.alarmCursor) },
        ...(role !== undefined && { mention: role }),
      };
      const detail = { ...(target && { target: target.shown }), ...(events && { events: events.join(', ') }), mention };
      return { change, events: [webhookEvent('set', webhook, detail, doing)] };
    }),
  );
  return requireWebhook({ store }, name);
}

function otherKind({ name, kind }: Pick<Webhook, 'name' | 'kind'>, target: WebhookAddress): RankdError {
  const message = `${name} is of the kind ${kind}, but the new address is of the kind ${target.kind}.`;
  return new RankdError('conflict', message, { hint: `rankd webhook remove ${name}, then rankd webhook add ${name}` });
}

/** A new secret; the old one signs as well for `overlapMs`. Throws as `setWebhook`. */
export async function rotateWebhook(
  { store, clock }: Tools,
  { name, overlapMs, by }: { name: string; overlapMs: number; by: string },
  keep: KeepSecret = () => () => undefined,
): Promise<{ webhook: Webhook; secret: string }> {
  const secret = newWebhookSecret();
  const takeBack = keep(secret);
  const doing = { by, at: clock.now() };
  const oldSecretUntil = doing.at + overlapMs;
  const judge = judgeOne(name, (webhook) => {
    if (webhook.secret === undefined) return { refusal: noSecret(webhook) };
    const change = { ...webhook, secret, oldSecret: webhook.secret, oldSecretUntil };
    const detail = { oldUntil: isoTime(oldSecretUntil) };
    return { change, events: [webhookEvent('rotate', webhook, detail, doing)] };
  });
  await store.updateWebhooks(judge).catch((error) => {
    takeBack();
    throw error;
  });
  return { webhook: await requireWebhook({ store }, name), secret };
}

function noSecret({ name }: Webhook): RankdError {
  const hint = `make a new webhook there, then: rankd webhook set ${name} --url-file FILE`;
  return new RankdError('conflict', `${name} leads to Discord, where the address itself is the secret.`, { hint });
}

/**
 * Goes on from where it was, or from now on. `leftOut` is how many events the webhook never gets for that, or because they are too old.
 * What is a declared webhook can be switched on again, as rankd may have switched it off.
 */
export async function enableWebhook(
  { store, clock }: Tools,
  { name, isFromNow, by }: { name: string; isFromNow: boolean; by: string },
): Promise<{ webhook: Webhook; leftOut: number }> {
  const doing = { by, at: clock.now() };
  const before = isFromNow ? Number.POSITIVE_INFINITY : doing.at - maxAgeMs;
  const found = await requireWebhook({ store }, name);
  const unsent = await unsentBefore({ store }, { webhook: found, addressHash: hashOf(found) }, before);
  await store.updateWebhooks(
    judgeOne(
      name,
      ({ why: _, failingSince: _since, heldUntil: _until, lastError: _error, ...webhook }, newestEvent) => {
        const left = unsent && leftOut(webhook, unsent, doing);
        const cursors = isFromNow ? { cursor: newestEvent, alarmCursor: newestEvent } : left?.webhook;
        const change = { ...webhook, ...cursors, state: 'enabled' as const, failedTries: 0 };
        const enabled = webhookEvent('enable', webhook, { fromNow: isFromNow }, doing);
        return { change, events: [enabled, ...(left?.events ?? [])] };
      },
      { isDeclaredToo: true },
    ),
  );
  const webhook = await requireWebhook({ store }, name);
  const waiting = await store.listDeliveries({ webhookId: webhook.id, state: 'waiting', limit: 10_000 });
  const isLeftOut = ({ tries, firstAt }: Delivery) => isFromNow || (tries > 0 && firstAt < before);
  await store.recordProgress({ webhookId: webhook.id, sequences: [] }, () => ({
    webhook: {},
    put: waiting.map(({ nextTryAt: _, ...one }) =>
      isLeftOut(one) ? { ...one, state: 'failed', error: 'left out' } : { ...one, nextTryAt: doing.at },
    ),
    events: [],
  }));
  const late = waiting.filter((one) => one.sequence <= found.cursor && isLeftOut(one)); // the others are among the unsent
  return { webhook, leftOut: (unsent?.count ?? 0) + late.length };
}

function hashOf({ address }: Webhook): string | undefined {
  return address === undefined ? undefined : addressHash(address);
}

/** Nothing is sent until it is enabled again. What happens meanwhile waits. */
export async function disableWebhook(
  { store, clock }: Tools,
  { name, by }: { name: string; by: string },
): Promise<Webhook> {
  const doing = { by, at: clock.now() };
  const why = `by ${by}`;
  await store.updateWebhooks(
    judgeOne(name, (webhook) => ({
      change: { ...webhook, state: 'disabled', why },
      events: [webhookDisabled(webhook, why, doing)],
    })),
  );
  return requireWebhook({ store }, name);
}

/** Which events are to be delivered once more. */
export interface Redelivery {
  sequences?: number[] | undefined;
  isFailed?: boolean | undefined;
  since?: number | undefined;
  until?: number | undefined;
}

/** The events that this selects of what the webhook got, or was to get. Throws `not_found` if there is none. */
export async function eventsToRedeliver(
  { store }: Tools,
  { name, sequences, isFailed, since, until }: Redelivery & { name: string },
): Promise<Array<{ sequence: number; type: Delivery['type'] }>> {
  const webhook = await requireWebhook({ store }, name);
  const failed = isFailed
    ? await store.listDeliveries({ webhookId: webhook.id, state: 'failed', oldestFirst: true, limit: 10_000 })
    : [];
  const named = await store.findEvents([...(sequences ?? []), ...failed.map(({ sequence }) => sequence)]);
  const hash = hashOf(webhook);
  const limit = 10_000;
  const past =
    since === undefined
      ? []
      : (await nextEvents({ store }, { webhook, addressHash: hash }, { after: 0, limit })).events;
  const found = [
    ...named,
    ...past.filter(({ event }) => event.at >= (since ?? 0) && event.at < (until ?? Number.POSITIVE_INFINITY)),
  ];
  const passed = found.filter(({ event }) => event.id <= webhook.cursor);
  const chosen = passed.flatMap((one) => {
    const type = typeOf(one);
    return type === undefined ? [] : [{ sequence: one.event.id, type }];
  });
  if (chosen.length > 0) return [...new Map(chosen.map((one) => [one.sequence, one])).values()];
  throw new RankdError('not_found', `There is no such event to send to ${webhook.name} again.`, {
    hint: `rankd webhook deliveries ${webhook.name}`,
  });
}

/** Has these events delivered once more, under the ids that they had. */
export async function redeliver(
  { store, clock }: Tools,
  {
    name,
    events,
    by,
  }: { name: string; events: ReadonlyArray<{ sequence: number; type: Delivery['type'] }>; by: string },
): Promise<void> {
  const webhook = await requireWebhook({ store }, name);
  const now = clock.now();
  const detail = { count: events.length, first: events[0]?.sequence };
  await store.recordProgress({ webhookId: webhook.id, sequences: [] }, () => ({
    webhook: {},
    put: events.map((event) => ({
      ...{ webhookId: webhook.id, ...event, state: 'waiting', tries: 0 },
      ...{ nextTryAt: now, firstAt: now, lastAt: now },
    })),
    events: [webhookEvent('redeliver', webhook, detail, { by, at: now })],
  }));
}

/** Nothing is delivered any more, not even what waits. */
export async function removeWebhook(
  { store, clock }: Tools,
  { name, by }: { name: string; by: string },
): Promise<void> {
  const doing = { by, at: clock.now() };
  await store.updateWebhooks(
    judgeOne(name, (webhook) => ({ change: 'removed', events: [webhookEvent('remove', webhook, {}, doing)] })),
  );
}

export async function requireWebhook({ store }: Pick<Ports, 'store'>, name: string): Promise<Webhook> {
  const webhook = (await store.listWebhooks()).find((one) => one.name === name || one.id === name);
  if (webhook === undefined) throw unknownWebhook(name);
  return webhook;
}

/** What became of the newest events on their way to a webhook; with `isFailed`, only of those that were given up. */
export async function listDeliveries(
  { store }: Tools,
  { name, isFailed, limit }: { name: string; isFailed: boolean; limit: number },
): Promise<{ workspaceId: string; deliveries: Delivery[] }> {
  const { id: webhookId } = await requireWebhook({ store }, name);
  const { id: workspaceId } = await store.getWorkspace();
  const query = { webhookId, limit, ...(isFailed && { state: 'failed' as const }) };
  return { workspaceId, deliveries: await store.listDeliveries(query) };
}

/** A webhook with what is on its way. */
export interface WebhookView {
  webhook: Webhook;
  /** Events that are not delivered yet; counted up to `maxCounted`. */
  backlog: number;
  /** When the oldest of them happened. */
  oldestAt: number | undefined;
  /** The newest that waits for another try. */
  waiting: Delivery | undefined;
}

export const maxCounted = 1_000;

export async function viewWebhooks({ store }: Tools): Promise<WebhookView[]> {
  return Promise.all((await store.listWebhooks()).map((webhook) => viewOf({ store }, webhook)));
}

export async function viewWebhook({ store }: Tools, name: string): Promise<WebhookView> {
  return viewOf({ store }, await requireWebhook({ store }, name));
}

async function viewOf({ store }: Pick<Ports, 'store'>, webhook: Webhook): Promise<WebhookView> {
  const wanted = { webhook, addressHash: hashOf(webhook) };
  const pages = partsOf(webhook).map(({ after, ...part }) =>
    nextEvents({ store }, { ...wanted, ...part }, { after, limit: maxCounted }),
  );
  const behind = (await Promise.all(pages)).flatMap(({ events }) => events.map(({ event }) => event));
  const query = { webhookId: webhook.id, state: 'waiting', oldestFirst: true, limit: maxCounted } as const;
  const again = (await store.listDeliveries(query)).filter(({ sequence }) => !behind.some(({ id }) => id === sequence));
  const times = [...behind.map(({ at }) => at), ...again.map(({ firstAt }) => firstAt)];
  return {
    webhook,
    backlog: behind.length + again.length,
    oldestAt: times.length === 0 ? undefined : Math.min(...times),
    waiting: again.at(-1),
  };
}

export interface TestOutcome {
  webhook: Webhook;
  outcome: Outcome;
  ms: number;
}

/** Sends one event that says it is a test, at once and not through the outbox. */
export async function testWebhook(app: Sending & Tools, name: string): Promise<TestOutcome> {
  const webhook = await requireWebhook(app, name);
  const target = targetOf(app, webhook);
  if (target === undefined) {
    const message = `The address of ${webhook.name} is in the configuration, which was not read.`;
    throw new RankdError('config_invalid', message, { hint: 'name the configuration file with --config' });
  }
  const before = app.clock.monotonic();
  const outcome = await (webhook.kind === 'discord'
    ? sendMessage(app, target, plainMessage(`rankd is connected: the webhook ${webhook.name} works.`))
    : sendSigned(app, target, await testEvent(app, webhook)));
  return { webhook, outcome, ms: Math.round(app.clock.monotonic() - before) };
}

async function testEvent({ store, clock }: Tools, { name }: Webhook): Promise<{ id: string; body: string }> {
  const { id: workspaceId } = await store.getWorkspace();
  const id = `evt_${workspaceId}_test_${crypto().randomUUID()}`;
  const data = { workspaceId, webhook: name };
  return { id, body: JSON.stringify({ type: 'webhook.test', timestamp: isoTime(clock.now()), data }) };
}

/** What Discord says a webhook is called. Throws `not_found` if there is none at this address any more. */
export async function lookAtDiscord(
  { courier, webhooks }: Sending,
  { address }: WebhookAddress,
): Promise<{ name: string; channelId: string } | undefined> {
  const answer = await courier.send({ method: 'GET', address, ...boundsOf(webhooks) });
  if (!answer.isAnswered || answer.status >= 500 || answer.status === 429) return undefined;
  if (answer.status >= 400) {
    throw new RankdError('usage', `Discord knows no webhook at this address (${answer.status}).`, {
      hint: 'in Discord: channel settings, Integrations, Webhooks, Copy Webhook URL',
    });
  }
  return { name: fieldIn(answer.text, 'name'), channelId: fieldIn(answer.text, 'channel_id') };
}

/** Only the beginning of an answer is read, so it may be no whole JSON. */
function fieldIn(text: string, name: string): string {
  const found = new RegExp(`"${name}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
  return found === undefined ? '?' : String(JSON.parse(found));
}
