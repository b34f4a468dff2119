import { RankdError } from '../../base/errors.ts';
import { isoTime } from '../../base/time.ts';
import { webhookFingerprint } from '../../config/compare.ts';
import type { DeclaredWebhook } from '../../config/declared-webhook.ts';
import { ConfigError } from '../../config/problem.ts';
import { newId } from '../../core/api-key.ts';
import type { StillDeclared } from '../../core/declarations.ts';
import { webhookDisabled, webhookEvent } from '../../core/events.ts';
import { flawOfEvents } from '../../core/webhooks/event-types.ts';
import { leftOut, maxAgeMs } from '../../core/webhooks/progress.ts';
import {
  type Delivery,
  maxWebhooks,
  newWebhookSecret,
  readAddress,
  type Webhook,
  type WebhookAddress,
} from '../../core/webhooks/webhook.ts';
import {
  clashesOf,
  declaredEdit,
  judgeNewWebhook,
  judgeOne,
  type WebhookClash,
} from '../../core/webhooks/webhook-changes.ts';
import type { Ports } from '../../ports/index.ts';
import { type SaveSecret, saveNowhere } from '../keys/keys.ts';
import { furthestCursors, unsentBefore } from './outbox.ts';
import { addressHash, boundsOf, requireWebhook, type Sending } from './send.ts';

type Tools = Pick<Ports, 'store' | 'clock'>;

export interface WebhookDefinition {
  name: string;
  target: WebhookAddress;
  events: string[];
  mention?: string | undefined;
  isForGames?: boolean | undefined;
  by: string;
}

/**
 * Creates a webhook, with a secret if it is for a program. Throws `already_exists` if the name or the address is taken,
 * and `conflict` if there are too many webhooks.
 */
export async function addWebhook(
  { store, clock }: Tools,
  { name, target, events, mention, isForGames, by }: WebhookDefinition,
  save: SaveSecret = saveNowhere,
): Promise<{ webhook: Webhook; secret: string | undefined }> {
  const secret = target.kind === 'standard' ? newWebhookSecret() : undefined;
  const removeSecret = secret === undefined ? () => undefined : save(secret);
  const webhook = {
    ...{ id: newId('wh'), name, events, createdAt: clock.now(), ...target },
    ...(secret !== undefined && { secret }),
    ...(mention !== undefined && { mention }),
    ...(isForGames && { isForGames }),
  };
  try {
    await store.updateWebhooks(judgeNewWebhook(webhook, { by, at: clock.now() }));
  } catch (error) {
    removeSecret();
    throw error;
  }
  return { webhook: await requireWebhook({ store }, name), secret };
}

export function addressFrom(text: string, kind?: Webhook['kind']): WebhookAddress {
  const read = readAddress(text, kind);
  if ('refusal' in read) throw read.refusal;
  return read;
}

/**
 * Throws `usage` if rankd must not call the address, and `already_exists` if the configuration declares a webhook with
 * it. Calls `warn` if the address can't be called at the moment.
 */
export async function refuseForbidden(
  { sender, webhooks }: Sending,
  { address, shown }: WebhookAddress,
  warn: (doubt: RankdError) => void,
): Promise<void> {
  const [twin] = [...webhooks.declared].find(([, declared]) => declared.address === address) ?? [];
  if (twin !== undefined)
    throw new RankdError('already_exists', `The webhook ${twin} in the configuration already has this address.`, {
      hint: `rankd webhook show ${twin}`,
    });
  const { refusal, refusedAddress = 'ADDRESS', doubt } = await sender.judgeAddress({ address, ...boundsOf(webhooks) });
  if (refusal !== undefined)
    throw new RankdError('usage', `rankd does not send events to ${shown}: ${refusal}.`, {
      hint: `if it is yours, allow it in the configuration: webhooks: { allow_private: ['${refusedAddress}'] }`,
    });
  if (doubt !== undefined)
    warn(
      new RankdError('usage', `rankd can't send events to ${shown} now: ${doubt}.`, {
        hint: 'check the address; rankd retries undelivered events',
      }),
    );
}

export function eventsFrom(names: readonly string[]): string[] {
  for (const name of names) {
    const flaw = flawOfEvents(name);
    if (flaw === undefined) continue;
    const hint = flaw.suggestion === undefined ? 'rankd webhook add --help lists them' : `--events ${flaw.suggestion}`;
    throw new RankdError('usage', flaw.message, { hint });
  }
  return [...new Set(names)];
}

/** The changes to a webhook; omitted fields stay the same. */
interface WebhookSetting {
  target?: WebhookAddress | undefined;
  events?: string[] | undefined;
  mention?: string | 'none' | undefined;
}

/**
 * Changes a webhook, effective from its next delivery. Throws `not_found`, `already_exists` if another webhook has the
 * new address, and `conflict` if the webhook is declared or the new address is of a different kind.
 */
export async function setWebhook(
  { store, clock }: Tools,
  { name, by, target, events, mention }: WebhookSetting & { name: string; by: string },
): Promise<void> {
  const actor = { by, at: clock.now() };
  const found = await requireWebhook({ store }, name);
  // These cursors skip past events that the webhook did not subscribe to, so that the new subscription does not deliver
  // them.
  const { cursor, alarmCursor } = await furthestCursors({ store }, found);
  await store.updateWebhooks(
    judgeOne(name, ({ mention: before, heldUntil, ...webhook }) => {
      if (target !== undefined && target.kind !== webhook.kind) return { refusal: otherKind(webhook, target) };
      const role = mention === 'none' ? undefined : (mention ?? before);
      const change = {
        ...{ ...webhook, ...target, events: events ?? webhook.events },
        ...{ cursor: Math.max(cursor, webhook.cursor), alarmCursor: Math.max(alarmCursor, webhook.alarmCursor) },
        ...(role !== undefined && { mention: role }),
        // A new address does not inherit the old one's pause.
        ...(target === undefined && heldUntil !== undefined && { heldUntil }),
      };
      const detail = { ...(target && { target: target.shown }), ...(events && { events: events.join(', ') }), mention };
      return { change, events: [webhookEvent('set', webhook, detail, actor)] };
    }),
  );
}

function otherKind({ name, kind }: Pick<Webhook, 'name' | 'kind'>, target: WebhookAddress): RankdError {
  const message = `The webhook ${name} has the kind ${kind}, but the new address has the kind ${target.kind}.`;
  return new RankdError('conflict', message, { hint: `rankd webhook remove ${name}, then rankd webhook add ${name}` });
}

/**
 * Creates a new secret. For `overlapMs`, events are signed with both the old and the new one. Throws `not_found`, and
 * `conflict` if the webhook is declared or its target is Discord.
 */
export async function rotateWebhook(
  { store, clock }: Tools,
  { name, overlapMs, by }: { name: string; overlapMs: number; by: string },
  save: SaveSecret = saveNowhere,
): Promise<{ webhook: Webhook; secret: string }> {
  const secret = newWebhookSecret();
  const removeSecret = save(secret);
  const actor = { by, at: clock.now() };
  const oldSecretUntil = actor.at + overlapMs;
  const judge = judgeOne(name, (webhook) => {
    if (webhook.secret === undefined) return { refusal: noSecret(webhook) };
    const change = { ...webhook, secret, oldSecret: webhook.secret, oldSecretUntil };
    const detail = { oldUntil: isoTime(oldSecretUntil) };
    return { change, events: [webhookEvent('rotate', webhook, detail, actor)] };
  });
  await store.updateWebhooks(judge).catch((error) => {
    removeSecret();
    throw error;
  });
  return { webhook: await requireWebhook({ store }, name), secret };
}

function noSecret({ name }: Webhook): RankdError {
  const hint = `create a new webhook in Discord, then run rankd webhook set ${name} --url-file FILE`;
  return new RankdError('conflict', `The webhook ${name} is in Discord, where the address itself is the secret.`, {
    hint,
  });
}

/**
 * Enables a webhook, even a declared one, because rankd itself may have disabled it. Delivery resumes at the cursor or,
 * with `skipsBacklog`, at the next new event. `leftOut` is the number of skipped events, including those that are too
 * old.
 */
export async function enableWebhook(
  { store, clock }: Tools,
  { name, skipsBacklog, by }: { name: string; skipsBacklog: boolean; by: string },
): Promise<{ leftOut: number }> {
  const actor = { by, at: clock.now() };
  const before = skipsBacklog ? Number.POSITIVE_INFINITY : actor.at - maxAgeMs;
  const found = await requireWebhook({ store }, name);
  const unsent = await unsentBefore({ store }, found, before);
  await store.updateWebhooks(
    judgeOne(
      name,
      ({ why: _, failingSince: _since, heldUntil: _until, lastError: _error, ...webhook }, newestEvent) => {
        const left = unsent && leftOut(webhook, unsent, actor);
        const cursors = skipsBacklog ? { cursor: newestEvent, alarmCursor: newestEvent } : left?.webhook;
        const change = { ...webhook, ...cursors, state: 'enabled' as const, failedTries: 0 };
        const enabled = webhookEvent('enable', webhook, { fromNow: skipsBacklog }, actor);
        return { change, events: [enabled, ...(left?.events ?? [])] };
      },
      { isDeclaredToo: true },
    ),
  );
  const waiting = await store.listDeliveries({ webhookId: found.id, state: 'waiting', limit: 10_000 });
  const isLeftOut = ({ tries, firstAt }: Delivery) => skipsBacklog || (tries > 0 && firstAt < before);
  await store.recordProgress({ webhookId: found.id, sequences: [] }, () => ({
    webhook: {},
    put: waiting.map(({ nextTryAt: _, ...one }) =>
      isLeftOut(one) ? { ...one, state: 'failed', error: 'skipped' } : { ...one, nextTryAt: actor.at },
    ),
    events: [],
  }));
  const late = waiting.filter((one) => one.sequence <= found.cursor && isLeftOut(one)); // `unsent` counts the others
  return { leftOut: (unsent?.count ?? 0) + late.length };
}

/** Disables a webhook. Its events wait until it is enabled again, unless they become too old in the meantime. */
export async function disableWebhook(
  { store, clock }: Tools,
  { name, by }: { name: string; by: string },
): Promise<void> {
  const actor = { by, at: clock.now() };
  const why = `by ${by}`;
  await store.updateWebhooks(
    judgeOne(name, (webhook) => ({
      change: { ...webhook, state: 'disabled', why },
      events: [webhookDisabled(webhook, why, actor)],
    })),
  );
}

/** Removes a webhook, and discards its waiting events. */
export async function removeWebhook(
  { store, clock }: Tools,
  { name, by }: { name: string; by: string },
): Promise<void> {
  const actor = { by, at: clock.now() };
  await store.updateWebhooks(
    judgeOne(name, (webhook) => ({ change: 'removed', events: [webhookEvent('remove', webhook, {}, actor)] })),
  );
}

/**
 * Throws `config_invalid` if an undeclared webhook has the same name or address as one of the targets, or if there
 * would be too many webhooks.
 */
export async function refuseWebhookClashes(
  { store }: Pick<Tools, 'store'>,
  targets: readonly DeclaredWebhook[],
): Promise<void> {
  const refusal = targets.length === 0 ? undefined : refusalOf(targets, await store.listWebhooks());
  if (refusal !== undefined) throw refusal;
}

/**
 * Applies the configuration's webhooks, and removes those that no daemon declares any more. If they clash, changes
 * nothing and throws the same errors as `refuseWebhookClashes`. Returns the webhooks that other daemons declare, but
 * that this one has dropped or declares differently.
 */
export async function declareWebhooks(
  { store, clock }: Tools,
  targets: readonly DeclaredWebhook[],
): Promise<StillDeclared[]> {
  const kept = await store.listWebhooks();
  if (targets.length === 0 && kept.every(({ declaredIn }) => declaredIn === undefined)) return [];
  const declared = targets.map((target) => {
    const { address, secret: _, at: _at, ...declaration } = target;
    return {
      ...declaration,
      ...(declaration.isForGames && { addressHash: addressHash(address.reveal()) }),
      fingerprint: webhookFingerprint(target),
      id: newId('wh'),
    };
  });
  const actor = { by: 'daemon', at: clock.now() };
  return store.declareWebhooks((facts) => {
    const refusal = refusalOf(targets, facts.webhooks);
    return refusal === undefined ? declaredEdit(declared, facts, actor) : { refusal };
  });
}

function refusalOf(targets: readonly DeclaredWebhook[], webhooks: readonly Webhook[]): ConfigError | undefined {
  const declared = targets.map(({ name, address }) => ({ name, address: address.reveal() }));
  const clashes = clashesOf(declared, webhooks);
  if (clashes.length === 0) return undefined;
  const problems = clashes.map((clash) => ({
    at: targets[clash.index]?.at[clash.field],
    setting: `webhooks.targets[${clash.index}].${clash.field}`,
    text: inWords(clash),
  }));
  return new ConfigError(problems, { file: undefined });
}

function inWords({ field, twin }: WebhookClash): string {
  if (twin === undefined)
    return `is one webhook too many: the limit is ${maxWebhooks}, including those created with rankd webhook add`;
  const what = field === 'name' ? 'is the name of' : 'has the address of';
  return `${what} the webhook "${twin.name}", which was created with rankd webhook add; remove it (rankd webhook remove ${twin.name})`;
}
