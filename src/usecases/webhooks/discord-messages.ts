import {
  colors,
  type DiscordMessage,
  fits,
  limits,
  loudMessage,
  plainMessage,
  quietMessage,
} from '../../core/webhooks/discord-message.ts';
import { maxEmbeds } from '../../core/webhooks/schedule.ts';
import { embedOf, lineOf, summaryOf } from './discord-embeds.ts';
import type { EventView } from './told-events.ts';

/** A message with its events. */
export interface PlannedMessage {
  message: DiscordMessage;
  events: readonly EventView[];
}

const maxLines = 100;
const maxMessages = 5;
const digestAfterMs = 24 * 3_600_000;

/** The messages for these events, in order. `isBurst`: a digest was sent just before. */
export function logMessages(events: readonly EventView[], now: number, { isBurst = false } = {}): PlannedMessage[] {
  const [first] = events;
  if (first === undefined) return [];
  const isOld = now - first.event.at > digestAfterMs;
  const embeds = events.length <= maxEmbeds && !isOld ? events.map(embedOf) : undefined;
  if (embeds !== undefined && fits(embeds)) return [{ message: quietMessage(embeds), events }];
  return digest(events, isBurst ? 1 : maxMessages);
}

/** Alarms notify people, and are never in a digest. */
export function alarmMessage(events: readonly EventView[], mention: string | undefined): PlannedMessage {
  const several = events.slice(0, maxEmbeds);
  const fitting = fits(several.map(embedOf)) ? several : events.slice(0, 1);
  return { message: loudMessage(fitting.map(embedOf), mention), events: fitting };
}

/** The same events on one line, for refused embeds. */
export function asPlainLine({ events }: PlannedMessage): DiscordMessage {
  const [first] = events;
  return plainMessage(events.length === 1 && first !== undefined ? lineOf(first) : summaryOf(events));
}

/** A line for each event, as many as fit; the last message has the number of further ones. */
function digest(events: readonly EventView[], atMost: number): PlannedMessage[] {
  const parts: Array<{ lines: string[]; events: EventView[] }> = [];
  let told = 0;
  for (const event of events.slice(0, maxLines)) {
    const line = lineOf(event);
    const part = parts.at(-1);
    if (part !== undefined && lengthOf(part.lines) + line.length + 1 <= roomForLines) {
      part.lines.push(line);
      part.events.push(event);
    } else if (parts.length < atMost) parts.push({ lines: [line], events: [event] });
    else break;
    told += 1;
  }
  const more = events.slice(told);
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

/** Leaves room for the line with the number of further events. */
const roomForLines = limits.description - 200;

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length + 1, 0);
}
