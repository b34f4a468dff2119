import { suggest } from '../../base/text.ts';
import type { AuditEvent, ChangeState, RankChange } from '../model.ts';

/** The type of webhook event for each audit action. Other audit actions are not sent to webhooks. */
const typeOfAction = {
  'rank.applied': 'rank.changed',
  'rank.refused': 'rank.refused',
  'rank.failed': 'rank.failed',
  'rank.unknown': 'rank.unsettled',
  'history.undo': 'undo.finished',
  'suspension.begin': 'suspension.begun',
  'suspension.extend': 'suspension.extended',
  'suspension.reopen': 'suspension.reopened',
  'suspension.end': 'suspension.ended',
  'suspension.lift': 'suspension.lifted',
  'suspension.supersede': 'suspension.superseded',
  'suspension.forfeit': 'suspension.forfeited',
  'suspension.stuck': 'suspension.stuck',
  'key.create': 'key.created',
  'key.declare': 'key.created',
  'key.rotate': 'key.rotated',
  'key.revoke': 'key.revoked',
  'key.pause': 'key.paused',
  'key.resume': 'key.resumed',
  'workspace.suspend': 'workspace.suspended',
  'workspace.resume': 'workspace.resumed',
  'credential.refuse': 'credential.refused',
  'credential.accept': 'credential.accepted',
  'credential.expire_soon': 'credential.expires_soon',
  'configuration.drift': 'configuration.drifted',
  'configuration.fit': 'configuration.fits',
  'webhook.disable': 'webhook.disabled',
  'webhook.skip': 'events.skipped',
} as const;

export type WebhookEventType = (typeof typeOfAction)[keyof typeof typeOfAction];

export const deliveredActions: readonly string[] = Object.keys(typeOfAction);

const eventTypes: readonly WebhookEventType[] = [...new Set(Object.values(typeOfAction))];

const groups = {
  changes: [
    'rank.changed',
    'undo.finished',
    'suspension.begun',
    'suspension.extended',
    'suspension.reopened',
    'suspension.ended',
    'suspension.lifted',
    'suspension.superseded',
    'suspension.forfeited',
  ],
  refusals: ['rank.refused', 'rank.failed'],
  keys: ['key.created', 'key.rotated', 'key.revoked', 'key.paused', 'key.resumed'],
  alarms: [
    'rank.unsettled',
    'suspension.stuck',
    'key.paused',
    'key.revoked',
    'workspace.suspended',
    'workspace.resumed',
    'credential.refused',
    'credential.accepted',
    'credential.expires_soon',
    'configuration.drifted',
    'configuration.fits',
    'webhook.disabled',
  ],
  all: eventTypes,
} as const satisfies Record<string, readonly WebhookEventType[]>;

export const eventGroups = Object.keys(groups) as Array<keyof typeof groups>;

export const defaultEvents = { discord: ['changes', 'alarms'], standard: ['all'] } as const;

export interface OutboxEvent {
  event: AuditEvent;
  change?: RankChange;
}

/**
 * Returns the type of webhook event for an audit event. Returns `undefined` for dry runs, applied changes that left the
 * roles as they were, key declarations without a new secret, and actions that webhooks do not receive.
 */
export function typeOf({ event }: OutboxEvent): WebhookEventType | undefined {
  const type = (typeOfAction as Record<string, WebhookEventType | undefined>)[event.action];
  const { dryRun, rolesBefore, rolesAfter, isNewSecret } = event.detail;
  if (dryRun === true) return undefined;
  if (type === 'rank.changed' && JSON.stringify(rolesBefore) === JSON.stringify(rolesAfter)) return undefined;
  return event.action === 'key.declare' && isNewSecret !== true ? undefined : type;
}

export const alarmActions: readonly string[] = Object.entries(typeOfAction)
  .filter(([, type]) => isAlarm(type))
  .map(([action]) => action);

export function isAlarm(type: WebhookEventType): boolean {
  return (groups.alarms as readonly WebhookEventType[]).includes(type);
}

/** Returns the command that solves the problem that an event reports, if there is one. */
export function fixOf(
  type: WebhookEventType,
  { subject, detail }: Pick<AuditEvent, 'subject' | 'detail'>,
): string | undefined {
  const { name = subject } = detail;
  return type === 'key.paused' ? `rankd key resume ${name}` : undefined;
}

interface Subscription {
  id: string;
  events: readonly string[];
  isForGames?: boolean;
}

/** True if the webhook receives the event. `addressHash`: the hash of its address, by which a game can select it. */
export function receives(webhook: Subscription, outboxEvent: OutboxEvent, addressHash: string | undefined): boolean {
  const { event, change } = outboxEvent;
  const type = typeOf(outboxEvent);
  if (type === undefined) return false;
  if (type === 'events.skipped') return event.subject === webhook.id;
  if (type === 'webhook.disabled' && event.subject === webhook.id) return false;
  const isChosen = webhook.isForGames === true && addressHash !== undefined && change?.webhookHash === addressHash;
  return isChosen || typesIn(webhook.events).includes(type);
}

function typesIn(names: readonly string[]): readonly string[] {
  return names.flatMap((name): readonly string[] => (groups as Record<string, readonly string[]>)[name] ?? [name]);
}

/**
 * Returns an error message and a suggestion for a name that is neither an event nor an event group; otherwise
 * `undefined`.
 */
export function flawOfEvents(name: string): { message: string; suggestion: string | undefined } | undefined {
  const names = [...eventGroups, ...eventTypes];
  if ((names as readonly string[]).includes(name)) return undefined;
  return { message: `There is no event or event group named "${name}".`, suggestion: suggest(name, names) };
}

/**
 * Returns the change as it was at the time of an audit event, so that every delivery attempt sends the same content.
 * People's names are the current ones, so that a forgotten person's name is not sent again.
 */
export function changeAt({ action, at, detail }: AuditEvent, change: RankChange): RankChange {
  const state = action.slice('rank.'.length) as ChangeState;
  const { rolesBefore, rolesAfter, code } = detail as unknown as Pick<
    RankChange,
    'rolesBefore' | 'rolesAfter' | 'code'
  >;
  const { finishedAt: _, ...kept } = change;
  const message = change.state === state ? change.message : '';
  return { ...kept, state, code, rolesBefore, rolesAfter, message, ...(state !== 'unknown' && { finishedAt: at }) };
}

/**
 * Returns the direction in which the member moved, judged by the highest role, or by the extra role that was given or
 * taken.
 */
export function moveOf({
  kind,
  roles = [],
  rolesBefore,
  rolesAfter,
}: RankChange): 'promotion' | 'demotion' | 'sideways' {
  if (kind !== undefined) return kind === 'role_added' ? 'promotion' : 'demotion';
  const top = (ids: number[]) => Math.max(0, ...roles.filter(({ id }) => ids.includes(id)).map(({ rank }) => rank));
  const [before, after] = [top(rolesBefore), top(rolesAfter)];
  if (before === after) return 'sideways';
  return after > before ? 'promotion' : 'demotion';
}
