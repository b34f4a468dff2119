import { RankdError } from '../../base/errors.ts';
import { refusalOfDeclared } from '../declared.ts';
import { type Actor, webhookEvent } from '../events.ts';
import type { Verdict } from '../verdict.ts';
import { maxWebhooks, type Webhook } from './webhook.ts';

/** The changes to the webhooks. */
export interface Edit {
  put: Webhook[];
  remove: string[];
}

type JudgeWebhooks = (webhooks: Webhook[], newestEvent: number) => Verdict<Edit>;

/** A webhook to create. It gets the events from then on. */
export type NewWebhook = Pick<Webhook, 'id' | 'name' | 'kind' | 'shown' | 'events' | 'createdAt'> &
  Partial<Pick<Webhook, 'address' | 'addressHash' | 'secret' | 'mention' | 'isForGames' | 'declaredIn'>>;

export function freshWebhook(webhook: NewWebhook, newestEvent: number): Webhook {
  return { ...webhook, state: 'enabled', cursor: newestEvent, alarmCursor: newestEvent, failedTries: 0 };
}

export function judgeNewWebhook(webhook: NewWebhook, actor: Actor): JudgeWebhooks {
  return (webhooks, newestEvent) => {
    const { name, kind, shown, events } = webhook;
    const refusal = refusalOfNew(webhook, webhooks);
    if (refusal !== undefined) return { refusal };
    const event = webhookEvent('add', webhook, { kind, target: shown, events: events.join(', ') }, actor);
    return { change: { put: [freshWebhook({ ...webhook, name }, newestEvent)], remove: [] }, events: [event] };
  };
}

function refusalOfNew({ name, address }: NewWebhook, webhooks: readonly Webhook[]): RankdError | undefined {
  if (webhooks.some((one) => one.name === name)) {
    const hint = `look at it with \`rankd webhook show ${name}\`, or choose another name`;
    return new RankdError('already_exists', `A webhook named ${name} exists already.`, { hint });
  }
  if (webhooks.length >= maxWebhooks) {
    const hint = 'rankd webhook remove NAME';
    return new RankdError('conflict', `There are ${maxWebhooks} webhooks already, which is the most.`, { hint });
  }
  return refusalOfTwin(address, webhooks);
}

/** Two webhooks with one address would get every event twice. */
function refusalOfTwin(address: string | undefined, others: readonly Webhook[]): RankdError | undefined {
  const twin = others.find((one) => address !== undefined && one.address === address);
  if (twin === undefined) return undefined;
  const hint = `rankd webhook set ${twin.name} --events …`;
  return new RankdError('already_exists', `The webhook ${twin.name} has this address already.`, { hint });
}

/** Judges the change of one webhook that must not be declared. */
export function judgeOne(
  name: string,
  judge: (webhook: Webhook, newestEvent: number) => Verdict<Webhook | 'removed'>,
  { isDeclaredToo = false } = {},
): JudgeWebhooks {
  return (webhooks, newestEvent) => {
    const webhook = webhooks.find((one) => one.name === name || one.id === name);
    if (webhook === undefined) return { refusal: unknownWebhook(name) };
    const refusal = isDeclaredToo ? undefined : refusalOfDeclared(`The webhook ${webhook.name}`, webhook, editHint);
    if (refusal !== undefined) return { refusal };
    const verdict = judge(webhook, newestEvent);
    if ('refusal' in verdict) return verdict;
    const { change, events } = verdict;
    if (change === 'removed') return { change: { put: [], remove: [webhook.id] }, events };
    const others = webhooks.filter(({ id }) => id !== webhook.id);
    const twin = refusalOfTwin(change.address, others);
    return twin === undefined ? { change: { put: [change], remove: [] }, events } : { refusal: twin };
  };
}

const editHint = 'edit the file, then run `rankd reload`';

export function unknownWebhook(name: string): RankdError {
  return new RankdError('not_found', `There is no webhook named ${name}.`, { hint: 'rankd webhook list' });
}
