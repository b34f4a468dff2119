import { RankdError } from '../../base/errors.ts';
import { compareDeclarations, type NodeDeclarations, refusalOfDeclared, type StillDeclared } from '../declarations.ts';
import { type Actor, type Verdict, webhookEvent } from '../events.ts';
import { maxWebhooks, type Webhook } from './webhook.ts';

interface Edit {
  put: Webhook[];
  remove: string[];
}

type JudgeWebhooks = (webhooks: Webhook[], newestEvent: number) => Verdict<Edit>;

/** A webhook to create. It receives only events that occur after its creation. */
export type NewWebhook = Pick<Webhook, 'id' | 'name' | 'kind' | 'shown' | 'events' | 'createdAt'> &
  Partial<Pick<Webhook, 'address' | 'addressHash' | 'secret' | 'mention' | 'isForGames' | 'declaredIn'>>;

function freshWebhook(webhook: NewWebhook, newestEvent: number): Webhook {
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
    const hint = `see it with \`rankd webhook show ${name}\`, or choose a different name`;
    return new RankdError('already_exists', `A webhook named ${name} already exists.`, { hint });
  }
  if (webhooks.length >= maxWebhooks) {
    const hint = 'rankd webhook remove NAME';
    return new RankdError('conflict', `There are already ${maxWebhooks} webhooks, which is the limit.`, { hint });
  }
  return refusalOfTwin(address, webhooks);
}

/** Returns the refusal if another webhook has this address, because the target would receive every event twice. */
function refusalOfTwin(address: string | undefined, others: readonly Webhook[]): RankdError | undefined {
  const twin = others.find((one) => address !== undefined && one.address === address);
  if (twin === undefined) return undefined;
  const hint = `rankd webhook set ${twin.name} --events …`;
  return new RankdError('already_exists', `The webhook ${twin.name} already has this address.`, { hint });
}

/**
 * Judges a change to the webhook with this name or id. Refuses to change a declared webhook, unless `isDeclaredToo` is
 * set.
 */
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

/** A declared webhook, whose address and secret are in files. */
export type WebhookDeclaration = Pick<
  Webhook,
  'name' | 'kind' | 'shown' | 'addressHash' | 'events' | 'mention' | 'isForGames'
> & {
  /** e.g. `rankd.yaml:31` */
  declaredIn: string;
};

/**
 * A declared webhook as a node stores it. `id` is used only if the webhook is new. `fingerprint` changes with the
 * address or secret, and reveals neither.
 */
export interface NewWebhookDeclaration extends WebhookDeclaration {
  id: string;
  fingerprint: string;
}

export interface WebhookFacts extends NodeDeclarations<NewWebhookDeclaration> {
  webhooks: Webhook[];
  newestEvent: number;
}

export interface DeclaredEdit extends Edit {
  renewed: NewWebhookDeclaration[];
  dropped: string[];
  stillDeclared: StillDeclared[];
}

/**
 * A conflict with the declared webhook at `index`. `twin`: the undeclared webhook with the same name or address;
 * `undefined` if the declared one would exceed the limit.
 */
export type WebhookClash =
  | { index: number; field: 'name' | 'url_file'; twin: Webhook }
  | { index: number; field: 'name'; twin: undefined };

/**
 * Returns the conflicts with undeclared webhooks or, if there are none, the first declared webhook beyond the limit.
 */
export function clashesOf(
  declared: ReadonlyArray<{ name: string; address: string }>,
  webhooks: readonly Webhook[],
): WebhookClash[] {
  const others = webhooks.filter(({ declaredIn }) => declaredIn === undefined);
  const clashes = declared.flatMap(({ name, address }, index): WebhookClash[] => {
    const namesake = others.find((one) => one.name === name);
    const twin = others.find((one) => one.address === address);
    if (namesake !== undefined) return [{ index, field: 'name', twin: namesake }];
    return twin === undefined ? [] : [{ index, field: 'url_file', twin }];
  });
  if (clashes.length > 0 || declared.length + others.length <= maxWebhooks) return clashes;
  return [{ index: maxWebhooks - others.length, field: 'name', twin: undefined }];
}

/**
 * Returns the changes that make the stored webhooks match the declarations in force. A webhook that was declared before
 * continues from its cursor.
 */
export function declaredEdit(
  own: readonly NewWebhookDeclaration[],
  { webhooks, newestEvent, ...nodes }: WebhookFacts,
  actor: Actor,
): Extract<Verdict<DeclaredEdit>, { change: unknown }> {
  const { inForce, ...declarations } = compareDeclarations<NewWebhookDeclaration>(own, nodes, {
    isSame,
    excludes: haveSameName,
  });
  const declared = inForce.map(({ fingerprint: _, ...declaration }) => declaration);
  const before = webhooks.filter(({ declaredIn }) => declaredIn !== undefined);
  const put = declared.flatMap((declaration) => {
    const known = before.find(({ name }) => name === declaration.name);
    if (known === undefined) return [freshWebhook({ ...declaration, createdAt: actor.at }, newestEvent)];
    const now = continued(known, declaration);
    return JSON.stringify(now) === JSON.stringify(known) ? [] : [now];
  });
  const ended = before.filter(({ name }) => !declared.some((one) => one.name === name));
  const redefined = put.filter((now) => definitionOf(now) !== definitionOf(before.find(({ id }) => id === now.id)));
  const events = [
    ...redefined.map((webhook) => webhookEvent('declare', webhook, detailOf(webhook), actor)),
    ...ended.map((webhook) => webhookEvent('remove', webhook, { reason: 'no longer declared' }, actor)),
  ];
  return { change: { put, remove: ended.map(({ id }) => id), ...declarations }, events };
}

function isSame(one: NewWebhookDeclaration, other: NewWebhookDeclaration): boolean {
  return haveSameName(one, other) && one.fingerprint === other.fingerprint && definitionOf(one) === definitionOf(other);
}

function haveSameName(one: { name: string }, other: { name: string }): boolean {
  return one.name === other.name;
}

function continued(known: Webhook, declaration: WebhookDeclaration): Webhook {
  const { mention: _, isForGames: _games, addressHash: _hash, ...kept } = known;
  return { ...kept, ...declaration, id: known.id };
}

/** Returns the definition as text for comparison, leaving out the name, address, secret and position in the file. */
function definitionOf(webhook: Webhook | WebhookDeclaration | undefined): string {
  if (webhook === undefined) return '';
  const { kind, shown, events, mention, isForGames } = webhook;
  return JSON.stringify([kind, shown, events, mention, isForGames]);
}

function detailOf({ kind, shown, events, declaredIn }: Webhook): Record<string, unknown> {
  return { kind, target: shown, events: events.join(', '), declaredIn };
}
