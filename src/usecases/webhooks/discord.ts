import { counted } from '../../base/text.ts';
import { isoTime } from '../../base/time.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import {
  colors,
  type DiscordMessage,
  type Embed,
  fits,
  limits,
  loudMessage,
  plainMessage,
  profileLink,
  profileOf,
  quietMessage,
  quoted,
} from '../../core/webhooks/discord.ts';
import { fixOf, moveOf, type WebhookEventType } from '../../core/webhooks/event-types.ts';
import { maxEmbeds } from '../../core/webhooks/progress.ts';
import { originOf, whoRequested } from '../history/change-document.ts';
import type { ChangeView } from '../history/history.ts';
import type { EventView } from './outbox.ts';

export interface PlannedMessage {
  message: DiscordMessage;
  events: readonly EventView[];
}

const maxLines = 100;
const maxMessages = 5;
const digestAfterMs = 24 * 3_600_000;

/** Returns the messages for these events, in order. `isBurst`: rankd has just sent several digests in a row. */
export function logMessages(events: readonly EventView[], now: number, { isBurst = false } = {}): PlannedMessage[] {
  const [first] = events;
  if (first === undefined) return [];
  const isOld = now - first.event.at > digestAfterMs;
  const embeds = events.length <= maxEmbeds && !isOld ? events.map(embedOf) : undefined;
  if (embeds !== undefined && fits(embeds)) return [{ message: quietMessage(embeds), events }];
  return digest(events, isBurst ? 1 : maxMessages);
}

/** Returns a message that notifies people of the first `maxEmbeds` alarms or, if those do not fit, of the first one. */
export function alarmMessage(events: readonly EventView[], mention: string | undefined): PlannedMessage {
  const several = events.slice(0, maxEmbeds);
  const fitting = fits(several.map(embedOf)) ? several : events.slice(0, 1);
  return { message: loudMessage(fitting.map(embedOf), mention), events: fitting };
}

/** Condenses a message into one line of plain text, in case Discord refuses its embeds. */
export function asPlainLine({ events }: PlannedMessage): DiscordMessage {
  const [first] = events;
  return plainMessage(events.length === 1 && first !== undefined ? lineOf(first) : summaryOf(events));
}

/** Returns messages that list one event per line. The last message ends with the number of events that did not fit. */
function digest(events: readonly EventView[], atMost: number): PlannedMessage[] {
  const parts: Array<{ lines: string[]; events: EventView[] }> = [];
  let listed = 0;
  for (const event of events.slice(0, maxLines)) {
    const line = lineOf(event);
    const part = parts.at(-1);
    if (part !== undefined && lengthOf(part.lines) + line.length + 1 <= roomForLines) {
      part.lines.push(line);
      part.events.push(event);
    } else if (parts.length < atMost) parts.push({ lines: [line], events: [event] });
    else break;
    listed += 1;
  }
  const more = events.slice(listed);
  const last = parts.at(-1);
  if (more.length > 0 && last !== undefined) {
    const since = new Date(more[0]?.event.at ?? 0).toISOString();
    last.lines.push(`and ${more.length} more: rankd history list --since ${since}`);
    last.events.push(...more);
  }
  const title = summaryOf(events).slice(0, limits.title);
  return parts.map(({ lines, events }, index) => ({
    message: quietMessage([
      {
        title: index === 0 ? title : `${index + 1} of ${parts.length}`,
        color: colors.sideways,
        description: lines.join('\n'),
        footer: { text: `events ${events[0]?.sequence} to ${events.at(-1)?.sequence}` },
      },
    ]),
    events,
  }));
}

/** Leaves room for the line that counts the omitted events. */
const roomForLines = limits.description - 200;

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0);
}

const nameLength = 80;

export function embedOf(one: EventView): Embed {
  const at = isoTime(one.event.at);
  return { ...(one.view === undefined ? ofRankd(one) : ofChange(one, one.view)), timestamp: at };
}

export function lineOf({ type, event, view, sequence }: EventView): string {
  if (view === undefined)
    return `${titleOf(type, event.detail)}: ${quoted(subjectOf(event.detail, event.subject), nameLength)}`;
  const { change } = view;
  const sign = type === 'rank.changed' ? signs[moveOf(change)] : '✖';
  const why = type === 'rank.changed' ? '' : ` (${change.code ?? type})`;
  return `${sign} ${memberOf(view)} (${change.rankeeId}) ${rolesOf(view, '')}${why} · ${sequence}`;
}

const signs = { promotion: '⬆', demotion: '⬇', sideways: '↔' } as const;

/** Summarizes several events, e.g. `37 promotions, 4 demotions, 2 refused in 20 s, by my-game`. */
export function summaryOf(events: readonly EventView[]): string {
  const kinds = new Map<string, number>();
  for (const one of events) kinds.set(kindOf(one), (kinds.get(kindOf(one)) ?? 0) + 1);
  const counts = [...kinds].map(([kind, count]) => (pluralized.has(kind) ? counted(count, kind) : `${count} ${kind}`));
  const times = events.map(({ event }) => event.at);
  const seconds = Math.max(1, Math.round((Math.max(...times) - Math.min(...times)) / 1000));
  const origins = new Set(events.flatMap(({ view }) => (view === undefined ? [] : [originOf(view)])));
  const [origin] = origins;
  const by = origins.size === 1 && origin !== undefined ? `, by ${quoted(origin, nameLength)}` : '';
  return `${counts.join(', ')} in ${seconds} s${by}`;
}

const pluralized = new Set(['promotion', 'demotion', 'added role', 'removed role', 'other event']);

function kindOf({ type, view }: EventView): string {
  if (view === undefined) return 'other event';
  if (type === 'rank.refused') return 'refused';
  if (type === 'rank.failed') return 'failed';
  const { kind } = view.change;
  if (kind !== undefined) return kind === 'role_added' ? 'added role' : 'removed role';
  const move = moveOf(view.change);
  return move === 'sideways' ? 'moved sideways' : move;
}

function ofChange({ type, sequence }: EventView, view: ChangeView): Embed {
  const { change } = view;
  const simulated = isSimulatedGroup(change.group) ? 'SIMULATED · ' : '';
  const from = change.placeId === undefined ? originOf(view) : `${originOf(view)}, place ${change.placeId}`;
  return {
    title: `${memberOf(view)} ${outcomeWords(type, view)}`,
    url: profileOf(change.rankeeId),
    color: colorOf(type, view),
    description: descriptionOf(type, view),
    fields: [
      { name: 'By', value: profileLink(quoted(requesterOf(view), nameLength), change.rankerId), inline: true },
      { name: 'From', value: quoted(from, 2 * nameLength), inline: true },
      ...(change.reason === undefined ? [] : [{ name: 'Why', value: quoted(change.reason, 300) }]),
    ],
    footer: { text: `${simulated}${change.id} · event ${sequence}` },
  };
}

function requesterOf({ change }: ChangeView): string {
  return change.keyId !== undefined && change.rankerId > 0
    ? change.rankerName || String(change.rankerId)
    : whoRequested(change);
}

function memberOf({ change, userName }: ChangeView): string {
  return quoted(userName || change.rankeeName || String(change.rankeeId), nameLength);
}

function outcomeWords(type: WebhookEventType, { change }: ChangeView): string {
  if (type === 'rank.refused') return 'not changed';
  if (type === 'rank.failed') return 'could not be changed';
  if (type === 'rank.unsettled') return 'may have been changed: rankd is still checking';
  if (change.undoOf !== undefined) return 'put back';
  if (change.kind !== undefined) return change.kind === 'role_added' ? 'got a role' : 'lost a role';
  return { promotion: 'promoted', demotion: 'demoted', sideways: 'moved' }[moveOf(change)];
}

function colorOf(type: WebhookEventType, { change }: ChangeView): number {
  if (type === 'rank.refused' || type === 'rank.failed') return colors.refused;
  if (type === 'rank.unsettled') return colors.alarm;
  return change.undoOf === undefined ? colors[moveOf(change)] : colors.undo;
}

function descriptionOf(type: WebhookEventType, view: ChangeView): string {
  const roles = rolesOf(view, '**');
  const { message } = view.change;
  return type === 'rank.changed' || message === '' ? roles : `${roles}\n${quoted(message, 500)}`;
}

/** e.g. `Trainee (10) → **Officer (20)**` */
function rolesOf({ change }: ChangeView, strong: string): string {
  const { roles = [], oldRoleId, roleId, newRankId } = change;
  const named = (id: number) => {
    const role = roles.find((one) => one.id === id);
    return role === undefined ? String(id) : `${quoted(role.name, nameLength)} (${role.rank})`;
  };
  const goal = `${strong}${roleId === undefined ? newRankId || '?' : named(roleId)}${strong}`;
  return oldRoleId === undefined || oldRoleId === roleId ? goal : `${named(oldRoleId)} → ${goal}`;
}

/** Returns the title of an event that is not about a change. */
function titleOf(type: WebhookEventType, detail: Record<string, unknown>): string {
  const hold = detail['kind'] === 'temporary' ? 'temporary rank or role' : 'suspension';
  return titles[type] ?? holdTitles(hold)[type] ?? type;
}

function holdTitles(hold: string): Partial<Record<WebhookEventType, string>> {
  return {
    'suspension.begun': `A ${hold} has begun`,
    'suspension.extended': `The end of a ${hold} was changed`,
    'suspension.reopened': `A ${hold} is in force again`,
    'suspension.ended': `A ${hold} is over`,
    'suspension.lifted': `A ${hold} was ended early`,
    'suspension.superseded': `A ${hold} is over: someone else changed the member`,
    'suspension.forfeited': 'A member left, and will not get back any roles',
    'suspension.stuck': `A member cannot get back the roles from before a ${hold}`,
  };
}

const titles: Partial<Record<WebhookEventType, string>> = {
  'undo.finished': 'Changes were undone',
  'key.created': 'A key was created',
  'key.rotated': 'A key has a new secret',
  'key.revoked': 'A key was revoked',
  'key.paused': 'A key is paused',
  'key.resumed': 'A key works again',
  'workspace.suspended': 'Every key is refused: the workspace was suspended',
  'workspace.resumed': 'Keys are accepted again',
  'credential.refused': "Roblox does not accept rankd's Roblox key",
  'credential.accepted': "Roblox accepts rankd's Roblox key again",
  'credential.expires_soon': "rankd's Roblox key expires soon",
  'configuration.drifted': 'A setting no longer identifies its role',
  'configuration.fits': 'A setting fits the roles of the group again',
  'webhook.disabled': 'A webhook was disabled',
  'events.skipped': 'Events were skipped',
};

function ofRankd({ type, event, sequence }: EventView): Embed {
  const { detail, subject, by } = event;
  const facts = type === 'undo.finished' ? undoFacts(detail) : Object.entries(detail);
  const lines = facts
    .filter(([, value]) => ['string', 'number'].includes(typeof value))
    .map(([name, value]) => `${quoted(name, 40)}: ${quoted(String(value), 300)}`);
  const fix = fixOf(type, event);
  return {
    title: titleOf(type, detail),
    color: colorOfRankd(type),
    description: [
      quoted(subject, nameLength),
      ...lines,
      ...(fix === undefined ? [] : [quoted(fix, 300)]),
      `by ${quoted(by, nameLength)}`,
    ].join('\n'),
    footer: { text: `event ${sequence}` },
  };
}

/** Returns an undo's result and selection, named after the command's options. */
function undoFacts(detail: Record<string, unknown>): Array<[string, unknown]> {
  const selected = Object.entries({ key: 'keyName', since: 'since', until: 'until', by: 'by', place: 'placeId' });
  return [['result', detail['result']], ...selected.map(([word, field]): [string, unknown] => [word, detail[field]])];
}

function colorOfRankd(type: WebhookEventType): number {
  if (type === 'undo.finished') return colors.undo;
  return type.startsWith('suspension.') && type !== 'suspension.stuck' ? colors.suspension : colors.alarm;
}

function subjectOf({ name }: Record<string, unknown>, subject: string): string {
  return typeof name === 'string' ? name : subject;
}
